# %% [markdown]
# # Must memory cost time?
#
# The people who trained 145.6 billion parameters on 1,536 A100s recomputed every block, because an 80 GB device couldn't hold all the activations.
# By your planner's count, that cost them seven of a step's 28 seconds. A quarter of the bill went into recomputing.
#
# Your planner's own choice recomputes nothing, and takes 20.7 s. But it pays for memory, too.
# If each device had 250 GB, your planner would find a plan that takes 19.1 s. With 40 GB, the best plan without recomputation would take 28.2 s.
#
# You can't put more memory into an A100. You can only hold less in it. In this lesson, your planner learns four techniques. Selective recomputation, ZeRO and FSDP make room, and overlap hides what the room costs.
# So the question of this lesson is: *must memory cost time?*
#
# **After this lesson you can**
#
# - weigh selective recomputation, ZeRO, overlap and FSDP against one another, in seconds and in bytes;
# - say which communication can hide behind compute, and how much of it can't;
# - say how little memory is enough for a given step time.
#
# **Time:** 40 minutes.
# **You need to know:** the planner of {lesson:stages}, and ZeRO and FSDP from {lesson:zero_and_fsdp}.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% note-run [markdown]
# Where was all this run?
#
# On a CPU. What this lesson says about A100s is arithmetic, and we compare it with what other people measured and published.

# %% planner-text [markdown]
# ## What does memory buy?
#
# The next cell is the planner of {lesson:stages}. It is folded; just run it. This lesson replaces five of its functions, some of them twice. So if you rerun a cell, rerun everything below it too.
#
# Only `Plan` has changed: it has two new fields, `zero` and `overlap`. They are switched off until we get to them.

# %% planner tags=["known"]
import math
from dataclasses import dataclass, replace

NODE = 8
SEQUENCE = 2048
VOCABULARY = 51200
PEAK_SHARE = 0.52


@dataclass
class Link:
    bandwidth: float  # bytes per second
    latency: float  # seconds


@dataclass
class Network:
    blocks: int
    width: int
    heads: int


@dataclass
class Machine:
    flops: float  # per second, as matrix products reach them
    memory: float
    inside: Link
    between: Link


@dataclass
class Plan:
    data: int
    tensor: int
    examples: int  # micro-batch size
    microbatches: int
    stages: int = 1
    chunks: int = 1
    recompute: str = "nothing"
    zero: int = 0
    overlap: bool = False


A100 = Machine(
    flops=PEAK_SHARE * 312e12,
    memory=80e9,
    inside=Link(240e9, 3.4e-6),
    between=Link(25e9, 14e-6),
)


def ring_seconds(devices, num_bytes, link):
    messages = 2 * (devices - 1)
    piece = num_bytes / devices
    return messages * (link.latency + piece / link.bandwidth)


def tree_seconds(devices, num_bytes, link):
    messages = 2 * math.log2(devices)
    return messages * link.latency + 2 * num_bytes / link.bandwidth


def all_reduce_seconds(per_node, nodes, num_bytes, inside, between):
    piece = num_bytes / per_node
    in_a_ring = ring_seconds(nodes, piece, between)
    in_a_tree = tree_seconds(nodes, piece, between)
    within = ring_seconds(per_node, num_bytes, inside)
    return within + min(in_a_ring, in_a_tree)


def spread(devices, room):
    per_node = math.gcd(devices, room)
    return per_node, devices // per_node


def over_tensor(machine, plan, num_bytes):
    per_node, nodes = spread(plan.tensor, NODE)
    links = machine.inside, machine.between
    return all_reduce_seconds(per_node, nodes, num_bytes, *links)


def over_data(machine, plan, num_bytes):
    room = max(NODE // plan.tensor, 1)
    per_node, nodes = spread(plan.data, room)
    links = machine.inside, machine.between
    return all_reduce_seconds(per_node, nodes, num_bytes, *links)


def compute_seconds(network, machine, plan):
    block_flops = 2 * 12 * network.width**2
    attention_flops = 2 * 2 * SEQUENCE * network.width
    logit_flops = 2 * network.width * VOCABULARY

    forward = network.blocks * (block_flops + attention_flops)
    forward += logit_flops
    tokens = plan.examples * SEQUENCE
    flops = 3 * tokens * forward / plan.tensor
    return flops / machine.flops


def tensor_seconds(network, machine, plan):
    tokens = plan.examples * SEQUENCE
    num_bytes = 2 * tokens * network.width
    times = 4 * network.blocks
    return times * over_tensor(machine, plan, num_bytes)


def send_seconds(network, machine, plan):
    if plan.stages == 1:
        return 0
    num_bytes = 2 * plan.examples * SEQUENCE * network.width
    piece = num_bytes / plan.tensor
    link = machine.between
    message = link.latency + piece / link.bandwidth
    return 2 * plan.chunks * message


def recomputed_flops(network, plan):
    # Of a token, in one block
    block_flops = 2 * 12 * network.width**2
    attention_flops = 2 * 2 * SEQUENCE * network.width
    if plan.recompute == "full":
        return block_flops + attention_flops
    return 0


def recompute_seconds(network, machine, plan):
    tokens = plan.examples * SEQUENCE
    of_token = network.blocks * recomputed_flops(network, plan)
    flops = tokens * of_token / plan.tensor
    return flops / machine.flops


def tensor_again_seconds(network, machine, plan):
    if plan.recompute == "full":
        return tensor_seconds(network, machine, plan) / 2
    return 0


def parameters_held(network, plan):
    in_blocks = 12 * network.width**2 * network.blocks
    embedding = network.width * VOCABULARY
    return (in_blocks + embedding) / plan.tensor


def gradient_seconds(network, machine, plan):
    num_bytes = 2 * parameters_held(network, plan)
    return over_data(machine, plan, num_bytes)


def one_stage(network, plan):
    # A copy of the network, with other blocks
    return replace(network, blocks=network.blocks // plan.stages)


def pipeline(one, stages, microbatches, chunks):
    bubble = (stages - 1) / chunks
    return (microbatches + bubble) * one


def microbatch_seconds(stage, machine, plan):
    seconds = compute_seconds(stage, machine, plan)
    seconds += tensor_seconds(stage, machine, plan)
    seconds += send_seconds(stage, machine, plan)
    seconds += recompute_seconds(stage, machine, plan)
    seconds += tensor_again_seconds(stage, machine, plan)
    return seconds


def once_seconds(stage, machine, plan):
    return gradient_seconds(stage, machine, plan)


def step_seconds(network, machine, plan):
    stage = one_stage(network, plan)
    one = microbatch_seconds(stage, machine, plan)
    many = plan.microbatches
    seconds = pipeline(one, plan.stages, many, plan.chunks)
    return seconds + once_seconds(stage, machine, plan)


def state_held(network, plan):
    parameters = parameters_held(network, plan)
    variables, gradients = 2 * parameters, 2 * parameters
    return {
        "variables": variables,
        "gradients": gradients,
        "optimizer": 12 * parameters,
    }


def in_flight(plan):
    waiting = plan.stages
    if plan.chunks > 1:
        waiting += (plan.stages - 1) / plan.chunks
    return min(waiting, plan.microbatches)


def block_activations(network, plan):
    tokens = plan.examples * SEQUENCE
    values = tokens * network.width * (10 + 24 / plan.tensor)
    pairs = plan.examples * SEQUENCE**2
    return values + 5 * pairs * network.heads / plan.tensor


def stored_of_block(network, plan):
    tokens = plan.examples * SEQUENCE
    if plan.recompute == "full":
        return 2 * tokens * network.width
    return block_activations(network, plan)


def logits_held(plan):
    return 2 * plan.examples * SEQUENCE * VOCABULARY / plan.tensor


def activations_held(network, plan):
    of_block = stored_of_block(network, plan)
    stored = in_flight(plan) * network.blocks * of_block
    # While a block is recomputed, it has all of its activations
    extra = block_activations(network, plan) - of_block
    return stored + extra + logits_held(plan)


def memory_held(network, plan):
    stage = one_stage(network, plan)
    held = state_held(stage, plan)
    held["activations"] = activations_held(stage, plan)
    return held


def divisors(number):
    return [each for each in range(1, number + 1) if number % each == 0]


def all_plans(network, devices, batch):
    plans = []
    for tensor in divisors(math.gcd(devices, network.heads)):
        others = devices // tensor
        for stages in divisors(math.gcd(others, network.blocks)):
            data = others // stages
            if batch % data == 0:
                for examples in divisors(batch // data):
                    number = batch // data // examples
                    plan = Plan(data, tensor, examples, number, stages)
                    plans.append(plan)
    return plans


def with_chunks(network, plans):
    found = []
    for plan in plans:
        found.append(plan)
        blocks = network.blocks // plan.stages
        if plan.stages > 1 and plan.microbatches % plan.stages == 0:
            for chunks in divisors(blocks)[1:]:
                found.append(replace(plan, chunks=chunks))
    return found


def ranked(network, machine, plans):
    found = []
    for plan in plans:
        held = memory_held(network, plan)
        if sum(held.values()) <= machine.memory:
            seconds = step_seconds(network, machine, plan)
            found.append((seconds, plan))
    return sorted(found, key=lambda pair: pair[0])


def show(plan):
    words = [f"{name} {value}" for name, value in vars(plan).items()]
    print(", ".join(words[:4]))
    print(", ".join(words[4:]))


# %% memory-text [markdown]
# Suppose that an A100 had less memory, or more. How long would the best step take? And how many devices would share one replica of the network? (No plan recomputes anything yet.)

# %% memory tags=["modelled"]
large = Network(blocks=80, width=12288, heads=96)
plans = with_chunks(large, all_plans(large, 1536, 2304))

print("memory   time of a step   tensor   stages   replica")
for gigabytes in [40, 60, 80, 120, 250]:
    machine = replace(A100, memory=gigabytes * 1e9)
    seconds, plan = ranked(large, machine, plans)[0]
    replica = plan.tensor * plan.stages
    time = f"{seconds:14.1f} s"
    print(f"{gigabytes:3} GB {time} {plan.tensor:8}", end=" ")
    print(f"{plan.stages:8} {replica:9}")

# %% memory-read [markdown]
# So memory buys time. With 250 GB a replica fits on 16 devices, and a step takes 19.1 s. With 40 GB a replica needs 384 devices, and a step takes 28.2 s.
# (At 60 GB it needs 128, as at 80 GB, but tensor parallelism spans two nodes.)
# The more devices share a replica, the more they communicate, and the longer the stages wait for one another.
#
# Your devices have 80 GB. How can a plan that was made for 250 GB fit into 80?
#
# ## What is worth recomputing?
#
# You know one way from {lesson:stages}: keep only the input of each block, and recompute the rest. But that costs a third more compute.
# Perhaps you needn't recompute everything. Let's look for a part that takes much memory and little compute.
#
# Here is one block, under the plan that was really run in 2021. Some of its activations are values for each token; the others are values for each *pair* of tokens:

# %% share-of-pairs tags=["modelled"]
theirs = Plan(
    data=24,
    tensor=8,
    examples=2,
    microbatches=48,
    stages=8,
    chunks=2,
)

tokens = theirs.examples * SEQUENCE
# For each feature of a token, 10 bytes that every device holds
# and 24 that tensor parallelism splits
for_tokens = tokens * large.width * (10 + 24 / theirs.tensor)
in_all = block_activations(large, theirs)
for_pairs = in_all - for_tokens
print(f"for each token:          {100 * for_tokens / in_all:.0f} %")
print(f"for each pair of tokens: {100 * for_pairs / in_all:.0f} %")

# %% selective-text [markdown]
# The values for pairs take 43 % of a block's memory. They form the attention matrices: in every head, softmax and dropout store one for each pair.
# **Selective recomputation** recomputes only these matrices, and keeps everything else. Your planner needs one more case for the compute, and one for the memory:


# %% selective
def recomputed_flops(network, plan):
    # Of a token, in one block
    block_flops = 2 * 12 * network.width**2
    attention_flops = 2 * 2 * SEQUENCE * network.width
    if plan.recompute == "full":
        return block_flops + attention_flops
    if plan.recompute == "selective":  # new
        return attention_flops
    return 0


def stored_of_block(network, plan):
    tokens = plan.examples * SEQUENCE
    if plan.recompute == "full":
        return 2 * tokens * network.width
    if plan.recompute == "selective":  # new
        return tokens * network.width * (10 + 24 / plan.tensor)
    return block_activations(network, plan)


# %% kept-text [markdown]
# Under each kind of recomputation, how much of a block does the plan of 2021 keep, and what does a device hold?

# %% kept tags=["modelled"]
for recompute in ["nothing", "selective", "full"]:
    plan = replace(theirs, recompute=recompute)
    stored = stored_of_block(large, plan)
    kept = 100 * stored / block_activations(large, plan)
    held = sum(memory_held(large, plan).values()) / 1e9
    print(f"{recompute:9}: {kept:3.0f} % of a block kept,", end=" ")
    print(f"{held:3.0f} GB")

# %% kept-read [markdown]
# Selective recomputation brings the plan from 171 GB down to 113 GB. That is a third less, but still over 80 GB.
# Full recomputation keeps only 9 % of a block, and fits. But it repeats the whole forward pass of every block. What does selective recomputation repeat?

# %% predict-selective [markdown]
# A network is 12,288 wide, and its sequences have 2,048 tokens. For each token, the forward pass of a block takes 24 · 12,288² FLOPs for products with weights,
# and 4 · 2,048 · 12,288 FLOPs for attention among the tokens.
# Recomputing whole blocks adds 32 % to the compute of a step. By what percentage does the compute grow if you recompute only the attention among the tokens?
#
# - [x] `1`
#   The width is six times the sequence, so 24 · 12,288 is 36 times as much as 4 · 2,048. Attention is one part in 37, and a 37th of 32 % is about 1 %.
# - [ ] `5`
#   That is a sixth of 32 %. The sequence is a sixth of the width, but there is also the 4 beside the 24.
# - [ ] `14`
#   That would be 43 % of 32 %. But 43 % is the share of the attention matrices in the memory, and not in the compute.
# - [ ] `32`
#   That is the price of recomputing everything. Most of it goes into the products with the weights.

# %% reveal-selective
selective = replace(theirs, recompute="selective")
more = recompute_seconds(large, A100, selective)
more /= compute_seconds(large, A100, selective)
reveal("memory_and_time-selective", round(100 * more))

# %% selective-read [markdown]
# In FLOPs, that is a bargain: 1 % more compute for a third less memory.
#
# And in practice? In 2022, Korthikanti and others measured both kinds of recomputation, with 175 billion parameters on 64 A100s. Here are their times beside your planner's:

# %% selective-published tags=["known", "modelled"]
gpt3 = Network(blocks=96, width=12288, heads=96)
theirs_2022 = Plan(
    data=1,
    tensor=8,
    examples=1,
    microbatches=64,
    stages=8,
    chunks=3,
)

for recompute, published in [("full", 18.1), ("selective", 13.8)]:
    plan = replace(theirs_2022, recompute=recompute)
    seconds = step_seconds(gpt3, A100, plan)
    print(f"{recompute:9}: published {published} s,", end=" ")
    print(f"predicted {seconds:.1f} s")

# %% published-read [markdown]
# Both estimates are a sixth too long, much as in {lesson:stages}. But the saving comes out right: the selective run took a quarter less time than the full one, as your planner predicts.
# (The note names another difference between the runs.)

# %% note-sequence [markdown]
# Did nothing else differ between the two runs?
#
# The selective run also used sequence parallelism (see the note in {lesson:transformer_block}). It splits the activations that tensor parallelism leaves whole on every device.
# Without attention matrices, a block keeps 10 + 24 / `tensor` bytes for each feature of a token. With sequence parallelism it keeps 34 / `tensor`.
# Your planner doesn't know it. It counts 86 GB for the selective run, which in fact fitted into 80.
# The explorer counts what sequence parallelism saves, but not its price: an extra gather of two inputs per block in the backward pass.
#
# FlashAttention, which came later, doesn't store the attention matrices at all. Then selective recomputation has nothing left to save.

# %% recomputing-text [markdown]
# Now let your planner choose: every plan comes without recomputation, with selective, and with full. For a later picture, we note the best time after each technique since {lesson:how_long}:


# %% each
def with_each(plans, name, values):
    # Every plan, once with each value in the field called `name`:
    # `**{"zero": 1}` means `zero=1`
    found = []
    for plan in plans:
        for value in values:
            found.append(replace(plan, **{name: value}))
    return found


# %% recomputing tags=["modelled"]
best_seconds = {"data and tensor": 39.9, "stages": 21.5, "chunks": 20.7}


def best_of(plans, machine):
    seconds, plan = ranked(large, machine, plans)[0]
    show(plan)
    held = sum(memory_held(large, plan).values()) / 1e9
    print(f"{held:.1f} GB, {seconds:.1f} s")
    return round(seconds, 1)


ways = ["nothing", "selective", "full"]
recomputing = with_each(plans, "recompute", ways)
best_seconds["recomputation"] = best_of(recomputing, A100)

# %% recomputing-read [markdown]
# The planner takes the bargain, and spreads a replica over half as many devices: eight stages, not 16. A step takes 20.1 s instead of 20.7 s.
#
# ## What does every replica hold?
#
# There are now 24 replicas. For each parameter, each of them holds 12 bytes of optimizer state, besides 2 for its weight and 2 for its gradient. (If gradients are float32, they take 4. {Lesson:which_plan} comes back to that.)
# They all hold the same state, so a single one would do. **ZeRO-1** ({lesson:zero_and_fsdp}) divides the optimizer state among the replicas:


# %% zero
def state_held(network, plan):
    parameters = parameters_held(network, plan)
    variables, gradients = 2 * parameters, 2 * parameters
    optimizer = 12 * parameters
    if plan.zero >= 1:  # new
        optimizer /= plan.data
    return {
        "variables": variables,
        "gradients": gradients,
        "optimizer": optimizer,
    }


# %% zero-run-text [markdown]
# Here is what that saves on a device under the plan of 2021, with full recomputation, as it was run:

# %% zero-run tags=["modelled"]
from lessons.scale.plan_bars import plans_against_memory

rows = []
for zero in [0, 1]:
    plan = replace(theirs, recompute="full", zero=zero)
    rows.append((f"zero={zero}", memory_held(large, plan)))
plans_against_memory(rows, A100.memory)

# %% zero-read [markdown]
# ZeRO-1 frees 27 GB on each device, more than half of what it held. And it sends no more bytes than before.
# A reduce-scatter of the gradients and an all-gather of the updated weights replace the all-reduce of the gradients, and together they send just as many bytes.
# So your planner adds no seconds for it. What does it choose now?

# %% zero-best tags=["modelled"]
with_zero = with_each(recomputing, "zero", [0, 1])
best_seconds["ZeRO-1"] = best_of(with_zero, A100)

# %% zero-best-read [markdown]
# Now a replica fits on 16 devices: four stages of four devices. With 250 GB, too, a replica took 16. Let's see which plan that was:

# %% much-memory tags=["modelled"]
with_250_gb = replace(A100, memory=250e9)
seconds = best_of(plans, with_250_gb)

# %% much-memory-read [markdown]
# It is the same plan! But without selective recomputation and ZeRO-1 it needs 225 GB. With them it fits into 73 GB, and takes only 0.2 s longer.
# So here is a first answer: by your planner's count, memory *hardly* costs time any more.

# %% note-choice [markdown]
# How firm is the planner's choice?
#
# It doesn't depend on the one number that we fitted, 52 % of an A100's peak. With 44 % or 66 %, a step is seconds longer or shorter, but this plan stays best.
#
# The previous choice, eight stages, is less firm. It beats 16 stages by only 0.02 s: your planner charges all stages for the logits.
# If the last stage had fewer blocks instead, so that all stages took equally long, 16 stages would win.
#
# And the plan at the end of this lesson isn't firm at all: {lesson:which_plan} is about that.

# %% overlap-text [markdown]
# ## What can hide?
#
# So far, your planner adds up no gradient until the whole backward pass is over. Devices needn't wait.
# As soon as a block has its gradients, their all-reduce can start, while the device moves on to the preceding block.
# This is called **overlap**: communication hides behind compute.
#
# Not all of it can hide. The picture shows all-reduces shorter than the backward pass, and longer ones:

# %% overlap-picture
from lessons.scale.memory_and_time.pictures import exposed_exchange

exposed_exchange()

# %% overlap-read [markdown]
# What sticks out is called **exposed communication**. If the all-reduces are short, only the last one sticks out: that of the block whose backward pass comes last. If they are long, what sticks out is about their total time minus that of the backward pass. Your planner works out both, and counts the longer:


# %% exposed
def exposed_seconds(communication, blocks, hidden_behind):
    the_last = communication / blocks
    beyond = communication - hidden_behind
    return max(the_last, beyond)


# %% overlap-code-text [markdown]
# And which backward pass do they hide behind? A replica adds up gradients over many micro-batches, and they aren't complete before the last. So there is only one backward pass to hide behind: that of the last micro-batch. It takes two thirds of the compute of a micro-batch, plus whatever is recomputed:


# %% overlap
def exposed_gradient_seconds(network, machine, plan):
    communication = gradient_seconds(network, machine, plan)
    if not plan.overlap:
        return communication
    backward = 2 / 3 * compute_seconds(network, machine, plan)
    backward += recompute_seconds(network, machine, plan)
    return exposed_seconds(communication, network.blocks, backward)


def once_seconds(stage, machine, plan):
    return exposed_gradient_seconds(stage, machine, plan)  # new


# %% overlap-best tags=["modelled"]
overlapping = with_each(with_zero, "overlap", [True])
best_seconds["overlap"] = best_of(overlapping, A100)

# %% overlap-best-read [markdown]
# The plan stays the same, and its step is half a second shorter. (Your planner makes two simplifications here. Compute and communication don't slow each other down. And under ZeRO-1, the gather of the updated weights hides with the rest, although it comes after the update and could only hide behind the next forward pass.)
#
# Is there more to gain? Ask your planner what unlimited memory would buy:

# %% unlimited tags=["modelled"]
unlimited = replace(A100, memory=1e15)
seconds = best_of(overlapping, unlimited)

# %% unlimited-read [markdown]
# There it is again, the price of memory: with unlimited memory, the best step would take 17.2 s instead of 18.8 s.
# That plan has no stages, so nothing waits for another stage, and a whole replica sits on two devices. But each of them would need 1,540 GB.
#
# ## Must a device hold whole weights?
#
# Replicas share more than the optimizer state. They also hold the same weights and, after the all-reduce, the same gradients. **FSDP**, which is ZeRO-3, divides these as well.
# (We leave out ZeRO-2, which divides the gradients but not the weights.)
# A device then holds only two blocks whole: the one it is computing, and the next one, which it is gathering:


# %% fsdp-held
def state_held(network, plan):
    parameters = parameters_held(network, plan)
    variables, gradients = 2 * parameters, 2 * parameters
    optimizer = 12 * parameters
    if plan.zero >= 1:
        optimizer /= plan.data
    if plan.zero == 3:  # new
        gradients /= plan.data
        block_bytes = 2 * 12 * network.width**2 / plan.tensor
        variables = variables / plan.data + 2 * block_bytes
    return {
        "variables": variables,
        "gradients": gradients,
        "optimizer": optimizer,
    }


# %% fsdp-bars-text [markdown]
# What does that save? Here is a replica on two devices again, now with selective recomputation and one example at a time. Compare ZeRO-1 and FSDP:

# %% fsdp-bars tags=["modelled"]
two_devices = Plan(
    data=768,
    tensor=2,
    examples=1,
    microbatches=3,
    recompute="selective",
)

rows = []
for zero in [1, 3]:
    plan = replace(two_devices, zero=zero)
    rows.append((f"zero={zero}", memory_held(large, plan)))
plans_against_memory(rows, A100.memory)

# %% fsdp-bars-read [markdown]
# The weights and gradients on a device shrink from 292 GB to 4 GB. Suddenly this plan fits, with almost 30 GB to spare! There must be a catch.

# %% fsdp-text [markdown]
# A device without weights has to fetch them. In *every* micro-batch it gathers those of each block twice, once forward and once backward, and a reduce-scatter adds up the gradients.
# Here is a micro-batch with three blocks. Time runs to the right. In the first two rows, the backward pass begins with the second `3`:
#
# ```text
# all-gather       1 2 3 3 2 1
# compute            1 2 3 3 2 1
# reduce-scatter             3 2 1
# ```
#
# While a device computes one block, it gathers the next. In the backward pass, it also adds up the gradients of the one before. If compute takes long enough, only the two ends stick out. (Your planner counts a little more: all three exchanges of one block.)
#
# Each of the three takes half as long as an all-reduce of the same bytes. In return, the end of a step has nothing left to add up.


# %% fsdp
def gather_seconds(network, machine, plan):
    if plan.zero < 3:
        return 0
    # The weights have as many bytes as the gradients
    all_reduce = gradient_seconds(network, machine, plan)
    # Gather, gather again, reduce-scatter: half the time each
    communication = 3 * all_reduce / 2
    if not plan.overlap:
        return communication
    compute = compute_seconds(network, machine, plan)
    compute += recompute_seconds(network, machine, plan)
    return exposed_seconds(communication, network.blocks, compute)


# %% fsdp-parts-text [markdown]
# These seconds are added to every micro-batch, and the all-reduce at the end of a step is gone:


# %% fsdp-parts
def microbatch_seconds(stage, machine, plan):
    seconds = compute_seconds(stage, machine, plan)
    seconds += tensor_seconds(stage, machine, plan)
    seconds += send_seconds(stage, machine, plan)
    seconds += recompute_seconds(stage, machine, plan)
    seconds += tensor_again_seconds(stage, machine, plan)
    seconds += gather_seconds(stage, machine, plan)  # new
    return seconds


def once_seconds(stage, machine, plan):
    if plan.zero == 3:  # new: FSDP has added up its gradients
        return 0
    return exposed_gradient_seconds(stage, machine, plan)


# %% fsdp-run-text [markdown]
# So how long does a step of this plan take, first without overlap and then with it?

# %% fsdp-run tags=["modelled"]
for overlap in [False, True]:
    plan = replace(two_devices, zero=3, overlap=overlap)
    seconds = step_seconds(large, A100, plan)
    print(f"overlap {overlap}: {seconds:.1f} s")

# %% fsdp-run-read [markdown]
# Without overlap, a step takes 34.5 s, half of it communication. With overlap it takes 17.6 s, because nearly all of that hides behind compute.
# So the room that FSDP makes isn't free at all. Its price is hidden.
#
# And what does your planner choose, if it may use FSDP? First without overlap:

# %% fsdp-without tags=["modelled"]
with_every_zero = with_each(recomputing, "zero", [0, 1, 3])
seconds = best_of(with_every_zero, A100)

# %% fsdp-without-read [markdown]
# That is the plan with ZeRO-1 again: without overlap, FSDP isn't worth it. And with overlap?

# %% fsdp-best tags=["modelled"]
with_fsdp = with_each(with_every_zero, "overlap", [True])
best_seconds["FSDP"] = best_of(with_fsdp, A100)

# %% fsdp-best-read [markdown]
# Now it is the plan with FSDP. 17.6 s, and the pipeline is gone! Each weight is split between two devices, and each half over 768 replicas.
#
# Here is the whole way from the first planner to this plan:

# %% ladder tags=["modelled"]
from lessons.scale.plan_bars import ladder

ladder(list(best_seconds.items()))

# %% ladder-read [markdown]
# ## Which technique saves most?
#
# The picture says stages: 18.4 s, and nothing else comes near. But something is odd. The last plan has no stages!
# If they saved so much, why can your planner do without them? Perhaps it helped to come first, with most left to save. So let's change the order, and allow stages last.

# %% predict-order [markdown]
# A planner has to train 145.6 billion parameters on 1,536 A100s of 80 GB, at first with tensor and data parallelism alone. In its best plan, a replica has 48 devices.
# Each of them holds 49 GB of weights, gradients and optimizer state; activations come on top.
# Now the planner may use one technique after another: first recomputation, then ZeRO-1, then overlap, then FSDP, and stages only at the end. Which technique saves most?
#
# - [ ] `recomputation` recomputation
#   It makes room among the activations. But here it is weights, gradients and optimizer state that take up the room.
# - [x] `ZeRO-1` ZeRO-1
#   Most of those 49 GB are optimizer state, and ZeRO-1 divides it among the replicas. A replica can then be much smaller, and its all-reduces much cheaper.
# - [ ] `overlap` overlap
#   It hides the all-reduce of the gradients, which comes once a step. Most of the time goes into all-reduces of activations.
# - [ ] `FSDP` FSDP
#   It makes replicas smaller still. But when its turn comes, ZeRO-1 has already made them much smaller.
# - [ ] `stages` stages
#   They make the all-reduces cheaper. But when they come last, other techniques have already done so.

# %% reveal-order
other = {"data and tensor": 39.9}
for name, choices in [
    ("recomputation", recomputing),
    ("ZeRO-1", with_zero),
    ("overlap", overlapping),
    ("FSDP", with_fsdp),
]:
    one_stage_only = [plan for plan in choices if plan.stages == 1]
    seconds, _plan = ranked(large, A100, one_stage_only)[0]
    other[name] = round(seconds, 1)
# The best of all plans, also of those with stages
other["stages"] = best_seconds["FSDP"]

saved = {}
before = other["data and tensor"]
for name, seconds in other.items():
    saved[name] = before - seconds
    before = seconds
reveal("memory_and_time-order", max(saved, key=saved.get))

# %% other-order-text [markdown]
# Here is the whole ladder in this order:

# %% other-order tags=["modelled"]
ladder(list(other.items()))

# %% other-order-read [markdown]
# Stages save nothing at all now. *What one technique has already saved, the next can't save again.* So a list of what each technique saves says little unless it gives the order.
# And some techniques save only together: without overlap, your planner didn't choose FSDP at all.
#
# Recomputation alone saves nothing either. On 32 devices instead of 48, a replica's weights, gradients and optimizer state take 73 of 80 GB. Only full recomputation fits the activations into 7 GB, and it costs more time than the smaller replica saves.
#
# ## So must memory cost time?
#
# Let's ask once more what memory buys, with the plans from before this lesson and with those of now:

# %% memory-again tags=["modelled"]
print("memory   before      now")
for gigabytes in [40, 60, 80, 120, 250]:
    machine = replace(A100, memory=gigabytes * 1e9)
    before, _plan = ranked(large, machine, plans)[0]
    now, _plan = ranked(large, machine, with_fsdp)[0]
    print(f"{gigabytes:3} GB {before:8.1f} s {now:6.1f} s")

# %% answer [markdown]
# With 40 GB, memory still costs time. From 60 GB on, more of it buys hardly anything. So the answer is: *memory hardly costs time any more, if the links are as fast as your planner believes.*
# Selective recomputation adds 1 % of compute, ZeRO-1 sends no more bytes, and what FSDP sends can hide.
#
# But look at the "if". The communication of the best plan takes just as long as the compute that hides it. With links half as fast between the nodes, a step would take 30.4 s, as {lesson:which_plan} shows.
# And in {lesson:how_long}, an all-reduce over 64 nodes took almost six times as long as the formula says. This plan gathers its weights over 192 nodes.
#
# **Exercise.** How little memory will do? Write `smallest_memory(plans, seconds)`. It returns the fewest gigabytes that an A100 needs if a step of `large` may take `seconds` at most.
# (Assume that some plan is fast enough.) Then try it: how much does a step of 20 s need with `plans`, and with `with_fsdp`?


# %% exercise-smallest
def smallest_memory(plans, seconds):
    # solution begin
    held = []
    for plan in plans:
        if step_seconds(large, A100, plan) <= seconds:
            held.append(sum(memory_held(large, plan).values()))
    return min(held) / 1e9
    # solution end


# %%
check("memory_and_time-smallest", smallest_memory)

# %% plain-heading [markdown]
# A step of 20 s needed 92 GB with the planner of {lesson:stages}. Now it needs 48 GB.
#
# ## Before you rent
#
# Those who ran this network in 2021 took 24.8 s for a step. Your planner offers you 17.6 s on the same devices, and says that you don't even need stages.
# Would you rent 1,536 devices for that? That is the question of {lesson:which_plan}, which also has the whole planner in one plain program.

# %% takeaways [markdown]
# ## Takeaways
#
# - Make room first. Where memory is short, more devices must share a replica, and they communicate more. So saving memory can save time.
# - ZeRO-1 sends no more bytes than plain data parallelism, and selective recomputation adds hardly any FLOPs. FSDP frees the most, but communicates in every micro-batch, which has to hide behind compute.
# - What one technique has already saved, the next can't save again. And some save only together, as FSDP does with overlap.
#
# Puzzle 14 on the page *Puzzles* is about ZeRO.

# %% score
score("memory_and_time")

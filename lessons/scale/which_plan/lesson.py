# %% [markdown]
# # Which plan would you run today?
#
# In 2021, 1,536 A100s took 24.8 s for a training step of a network with 145.6 billion parameters and a batch of 2,304 examples.
# In this lesson, your planner will offer you a plan that takes 17.6 s. Training on 300 billion tokens would then take 13 days instead of 18.
#
# Would you rent 1,536 devices on the strength of that? We know of nobody who has measured this plan.
# And if your planner is wrong, you'll find out with 1,536 devices running, and every one of them on your bill.
#
# First you'll teach the planner three things: which activations are worth recomputing, what the replicas can share, and which communication can hide behind compute.
# They bring the best step from 20.7 s down to 17.6 s. Then you'll meet a published run that the planner gets badly wrong. Knowing that, you'll choose a plan for 64 H100s.
# *Which plan would you run today, and what would you measure first?*
#
# **After this lesson you can**
#
# - weigh selective recomputation, ZeRO, overlap and FSDP against one another, in seconds and in bytes;
# - judge which of a planner's estimates to trust;
# - choose a plan that you'll hardly regret, whether your links are fast or slow.
#
# **Time:** 55 minutes.
# **You need to know:** the planner of {lesson:stages}, and ZeRO and FSDP from {lesson:zero_and_fsdp}.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% note-run [markdown]
# Where was all this run?
#
# On a CPU. What this lesson says about A100s and H100s is arithmetic, and we compare it with what other people measured and published.

# %% so-far-text [markdown]
# ## What is worth recomputing?
#
# For this network, your planner's best step takes 20.7 s. Here is how it got there in the last two lessons:

# %% so-far tags=["modelled"]
from lessons.scale.plan_bars import ladder

steps = {"data and tensor": 39.9, "stages": 21.5, "chunks": 20.7}
ladder(list(steps.items()))

# %% planner-text [markdown]
# The 20.7-second plan keeps all its activations, and needs 16 stages to make room for them. The plan actually run in 2021 needs only 8, because it recomputes every block. By your planner's count, that costs it seven seconds per step.
# There may be something better between the two: recompute a part, and keep the rest.
#
# The folded cell below is the planner of {lesson:stages}. Just run it. In this lesson we'll replace five of its functions. (If you ever rerun this cell, rerun everything below it as well.)

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


PUBLISHED = 24.8


def show(plan):
    words = [f"{name} {value}" for name, value in vars(plan).items()]
    print(", ".join(words[:4]))
    print(", ".join(words[4:]))


def report(seconds, plan):
    show(plan)
    held = sum(memory_held(large, plan).values())
    print(f"{held / 1e9:.1f} GB, {seconds:.1f} s,", end=" ")
    print(f"{seconds / PUBLISHED:.2f} of the published time\n")


# %% plan-text [markdown]
# A plan gets two new fields. They stay switched off until their sections come:


# %% plan
@dataclass
class Plan:
    data: int
    tensor: int
    examples: int  # micro-batch size
    microbatches: int
    stages: int = 1
    chunks: int = 1
    recompute: str = "nothing"
    zero: int = 0  # from "What does every replica hold?" on
    overlap: bool = False  # from "What can hide?" on


# %% shares-text [markdown]
# Now look at one block of the plan of 2021. Some of its activations are values for each token; the others are values for each *pair* of tokens.
# Here is how much of the block's memory each kind takes:

# %% share-of-pairs tags=["modelled"]
large = Network(blocks=80, width=12288, heads=96)
theirs = Plan(
    data=24,
    tensor=8,
    examples=2,
    microbatches=48,
    stages=8,
    chunks=2,
)

tokens = theirs.examples * SEQUENCE
for_tokens = tokens * large.width * (10 + 24 / theirs.tensor)
in_all = block_activations(large, theirs)
print(f"for each token:          {100 * for_tokens / in_all:.0f} %")
for_pairs = in_all - for_tokens
print(f"for each pair of tokens: {100 * for_pairs / in_all:.0f} %")

# %% selective-text [markdown]
# The pairs take 43 %. They are the matrices of attention: in every head, softmax and dropout leave an entry for each pair of tokens.
# **Selective recomputation** recomputes only these matrices, and keeps everything else. Your planner needs one more case in the compute, and one in the memory:


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
# How much of a block does the 2021 plan keep, and how much does a device hold: without recomputation, with selective, with full?

# %% kept tags=["modelled"]
for recompute in ["nothing", "selective", "full"]:
    plan = replace(theirs, recompute=recompute)
    stored = stored_of_block(large, plan)
    kept = 100 * stored / block_activations(large, plan)
    held = sum(memory_held(large, plan).values()) / 1e9
    print(f"{recompute:9}: {kept:3.0f} % of a block kept,", end=" ")
    print(f"{held:3.0f} GB")

# %% kept-read [markdown]
# Selective recomputation brings the plan from 171 GB down to 113 GB. That is a third less, but still too much for a device of 80 GB.
# Full recomputation keeps only 9 % of a block, and fits with 50 GB. But it repeats the whole forward pass of every block.

# %% predict-selective [markdown]
# A network is 12,288 wide, and its sequences have 2,048 tokens. For each token, the forward pass of a block takes 24 · 12,288² FLOPs for products with weights,
# and 4 · 2,048 · 12,288 FLOPs for attention among the tokens.
# Recomputing whole blocks adds 32 % to the compute of a step. By what percentage does the compute grow if you recompute only the attention among the tokens?
#
# - [x] `1`
#   The width is six times the sequence, so 24 times the width is 36 times as much as 4 times the sequence. Attention is one part of 37, and a 37th of 32 % is about 1 %.
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
reveal("which_plan-selective", round(100 * more))

# %% selective-read [markdown]
# In FLOPs, that is a bargain: 1 % more compute for a third less memory.
#
# In 2022, Korthikanti and others measured both kinds of recomputation, with 175 billion parameters on 64 A100s.
# Their selective run also used sequence parallelism, which {lesson:transformer_block} has a note on. Here are their times beside your planner's:

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
    held = sum(memory_held(gpt3, plan).values()) / 1e9
    print(f"{recompute:9}: published {published} s,", end=" ")
    print(f"predicted {seconds:.1f} s, {held:.0f} GB")

# %% published-read [markdown]
# Both estimates are a sixth too long, much as in {lesson:stages}. But the saving comes out right: selective recomputation, with sequence parallelism, took a quarter less time than full, as your planner predicts.
#
# The memory is wrong: your planner counts 86 GB for the selective run, too much for a device.
# In fact the run did fit, because sequence parallelism splits the activations that tensor parallelism leaves whole on every device.

# %% note-sequence [markdown]
# How much does sequence parallelism save?
#
# Without attention matrices, a block keeps 10 + 24 / `tensor` bytes for each feature of a token. With sequence parallelism it keeps 34 / `tensor`.
# The explorer counts this saving, but not its price: an extra gather of two inputs per block in the backward pass. Your planner counts neither.
#
# FlashAttention, which came later, doesn't store the attention matrices at all. Then selective recomputation has nothing left to save.

# %% zero-text [markdown]
# ## What does every replica hold?
#
# The plan of 2021 has 24 replicas, and each of them holds the whole optimizer state. ZeRO ({lesson:zero_and_fsdp}) gives each replica only a share of it.
# ZeRO-1 divides only the optimizer state. ZeRO-3, also called FSDP, divides the gradients and the weights too. We leave out ZeRO-2, which divides the gradients but not the weights.
#
# Under FSDP, a device still holds two blocks whole: the one that it computes, and the next, which it gathers meanwhile:


# %% zero
def state_held(network, plan):
    parameters = parameters_held(network, plan)
    variables, gradients = 2 * parameters, 2 * parameters
    optimizer = 12 * parameters
    if plan.zero >= 1:  # new
        optimizer /= plan.data
    if plan.zero == 3:  # new
        gradients /= plan.data
        # Two blocks are whole: one that computes, and the next
        whole = 2 * 2 * 12 * network.width**2 / plan.tensor
        variables = variables / plan.data + whole
    return {
        "variables": variables,
        "gradients": gradients,
        "optimizer": optimizer,
    }


# %% zero-run-text [markdown]
# Here is what a device holds under the plan of 2021 without ZeRO, with ZeRO-1 and with ZeRO-3:

# %% zero-run tags=["modelled"]
from lessons.scale.plan_bars import plans_against_memory

rows = []
for zero in [0, 1, 3]:
    plan = replace(theirs, recompute="full", zero=zero)
    rows.append((f"zero={zero}", memory_held(large, plan)))
plans_against_memory(rows, A100.memory)

# %% zero-read [markdown]
# ZeRO-1 frees 27 GB on each device, more than half of what it held. ZeRO-3 frees 8 GB more.
#
# ZeRO-1 sends no more bytes for that. In place of the all-reduce of the gradients,
# it makes a reduce-scatter of the gradients and an all-gather of the updated weights, and together these move as many bytes.
# ZeRO-3 does cost time. We'll count it after the next technique.

# %% overlap-text [markdown]
# ## What can hide?
#
# So far, your planner waits for the whole backward pass before it adds up a single gradient. It needn't.
# As soon as a block has its gradients, their all-reduce can start, while the device moves on to the preceding block.
# This is called **overlap**: communication hides behind compute. The four smallest of the ten published runs already used it. Your planner assumes that the two don't slow each other down.

# %% overlap-picture
from lessons.scale.which_plan.pictures import exposed_exchange

exposed_exchange()

# %% overlap-read [markdown]
# Two parts can't hide: the all-reduce of the block whose backward pass comes last, and whatever is still running when the backward pass ends. This is **exposed communication**. Your planner adds the larger to the step.
#
# The gradients are complete only in the last micro-batch. So there is only one backward pass to hide behind, that of the last micro-batch. It is two thirds of that micro-batch's compute, plus whatever is recomputed.


# %% overlap
def exposed_seconds(communication, blocks, hidden_behind):
    of_one_block = communication / blocks
    too_long = communication - hidden_behind
    return max(of_one_block, too_long)


def exposed_gradient_seconds(network, machine, plan):
    communication = gradient_seconds(network, machine, plan)
    if not plan.overlap:
        return communication
    # Gradients are complete only in the last micro-batch
    backward = 2 / 3 * compute_seconds(network, machine, plan)
    backward += recompute_seconds(network, machine, plan)
    return exposed_seconds(communication, network.blocks, backward)


def once_seconds(stage, machine, plan):
    return exposed_gradient_seconds(stage, machine, plan)  # new


# %% today-text [markdown]
# ## What does it all save?
#
# Now let the planner choose again: first what to recompute, then also whether to use ZeRO-1, and finally with overlap in all plans.
# `with_each` copies every plan once for each value of a field:


# %% each
def with_each(plans, name, values):
    # Each plan with each of these values in the field of that name
    found = []
    for plan in plans:
        for value in values:
            found.append(replace(plan, **{name: value}))
    return found


# %% today tags=["modelled"]
plans = with_chunks(large, all_plans(large, 1536, 2304))
ways = ["nothing", "selective", "full"]
recomputing = with_each(plans, "recompute", ways)
seconds, best = ranked(large, A100, recomputing)[0]
report(seconds, best)
steps["recomputation"] = round(seconds, 1)

with_zero = with_each(recomputing, "zero", [0, 1])
seconds, best = ranked(large, A100, with_zero)[0]
report(seconds, best)
steps["ZeRO-1"] = round(seconds, 1)

overlapping = with_each(with_zero, "overlap", [True])
seconds, best = ranked(large, A100, overlapping)[0]
report(seconds, best)
steps["overlap"] = round(seconds, 1)

# %% today-read [markdown]
# Follow the plan as it changes. Selective recomputation makes room, so eight stages are enough instead of sixteen.
#
# ZeRO-1 makes more room. Now four stages are enough, and tensor-parallel groups of four, with cheaper all-reduces.
# A replica fits on 16 devices instead of 64, which leaves room for 96 replicas. Overlap keeps this plan, and hides part of its communication.
#
# This is what each technique saves:

# %% ladder tags=["modelled"]
ladder(list(steps.items()))

# %% ladder-read [markdown]
# Together, the techniques bring the step from 39.9 s to 18.8 s, and stages save most of it. But stages also came first, when there was most to save.

# %% predict-order [markdown]
# A planner has to train 145.6 billion parameters on 1,536 A100s, at first with tensor and data parallelism alone. In its best plan, a replica has 48 devices.
# Each of them holds 49 GB for its parameters, and the activations must fit next to that.
# Now the planner may use one technique after another: first recomputation, then ZeRO-1, then overlap, and stages only at the end. Which technique saves most?
#
# - [ ] `recomputation` recomputation
#   It makes room among the activations. But here the parameters are what takes up the room.
# - [x] `ZeRO-1` ZeRO-1
#   Most of what a device holds for parameters is optimizer state, and ZeRO-1 shares that out among the replicas. A replica can then be much smaller, and its all-reduces much cheaper.
# - [ ] `overlap` overlap
#   It hides the all-reduce of the gradients, which comes once a step. Most of the time goes into all-reduces of activations.
# - [ ] `stages` stages, once more
#   They make the all-reduces cheaper. But when they come last, another technique has already done so.

# %% reveal-order
other = {"data and tensor": 39.9}
for name, found in [
    ("recomputation", recomputing),
    ("ZeRO-1", with_zero),
    ("overlap", overlapping),
]:
    without = [plan for plan in found if plan.stages == 1]
    seconds, _plan = ranked(large, A100, without)[0]
    other[name] = round(seconds, 1)
other["stages"] = steps["overlap"]

names, times = list(other), list(other.values())
most, saved_most = "", 0
for number in range(1, len(names)):
    saved = times[number - 1] - times[number]
    if saved > saved_most:
        most, saved_most = names[number], saved
reveal("which_plan-order", most)

# %% other-order-text [markdown]
# Here is the whole ladder in this order:

# %% other-order tags=["modelled"]
ladder(list(other.items()))

# %% other-order-read [markdown]
# Stages save only 4.5 s now. What one technique has already saved, the next can't save again.
#
# Recomputation alone saves nothing. With 32 devices in a replica instead of 48, weights, gradients and optimizer state take 73 of 80 GB.
# Only full recomputation squeezes the activations into the remaining 7 GB, and that costs more time than the smaller replica saves.

# %% note-choice [markdown]
# How firm is the planner's choice?
#
# It doesn't depend on the one number that we fitted, 52 % of an A100's peak. With 44 % or 66 %, a step takes seconds more or less, but the plan of 18.8 s stays the best.
#
# The eight stages of the first plan are less firm. They beat 16 stages by only 0.02 s, because your planner charges every stage for the logits.
# If the last stage had fewer blocks instead, so that all stages took equally long, 16 stages would win.

# %% fsdp-text [markdown]
# ## Too good to be true
#
# Your planner doesn't count the time of FSDP yet. A device gathers the weights of each block twice, for the forward and for the backward pass,
# and a reduce-scatter adds up the gradients. It does all three in *every* micro-batch, and has nothing left to add up at the end of the step. Each takes half as long as an all-reduce. With overlap, they too hide behind compute:


# %% fsdp
def gather_seconds(network, machine, plan):
    if plan.zero < 3:
        return 0
    # The weights have as many bytes as the gradients
    gather = gradient_seconds(network, machine, plan) / 2
    # Gather, gather again, reduce-scatter
    communication = 3 * gather
    if not plan.overlap:
        return communication
    compute = compute_seconds(network, machine, plan)
    compute += recompute_seconds(network, machine, plan)
    return exposed_seconds(communication, network.blocks, compute)


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
# Now the planner may use FSDP as well:

# %% fsdp-run tags=["modelled"]
with_fsdp = with_each(recomputing, "zero", [0, 1, 3])
with_fsdp = with_each(with_fsdp, "overlap", [True])
seconds, best = ranked(large, A100, with_fsdp)[0]
report(seconds, best)

# %% fsdp-read [markdown]
# There they are, the 17.6 seconds. And the pipeline is gone! Your planner splits each weight between two devices, and then over 768 replicas.
# If that is true, most of {lesson:stages} was for nothing.
#
# The paper that measured the 24.8 s has also measured FSDP, under the name of ZeRO-3: 175 billion parameters and a batch of 1,536 examples, on 384, 768 and 1,536 devices.

# %% predict-fsdp [markdown]
# Training steps of a network of 175 billion parameters were measured with FSDP, with the same batch of 1,536 examples on every number of devices. In seconds, a step took 81.6 on 384 devices, and 66.8 on 768.
# A planner expects 72.5 on 384 devices, 36.3 on 768, and 18.2 on 1,536. How many seconds did a step take on 1,536 devices?
#
# - [ ] `18.2`
#   The planner says so. But on 768 devices it was already off by almost a factor of two.
# - [ ] `33.4`
#   That would be half the time on twice as many devices. From 384 to 768 devices, the time fell by a fifth only.
# - [ ] `54.7`
#   That would be a fifth less once more. But communication doesn't shrink as compute does, and by now it takes most of the step.
# - [x] `66.8`
#   The second 768 devices brought nothing at all. A device has half as many examples, so it computes for half as long. But it gathers the same weights, from twice as many devices.

# %% reveal-fsdp
measured = {384: 81.6, 768: 66.8, 1536: 66.8}
reveal("which_plan-fsdp", measured[1536])

# %% fsdp-published-text [markdown]
# Here are the published times beside those of your planner:

# %% fsdp-published tags=["modelled"]
from lessons.scale.which_plan.pictures import times_over_devices


def fsdp_on(devices):
    return Plan(
        data=devices,
        tensor=1,
        examples=1536 // devices,
        microbatches=1,
        recompute="full",
        zero=3,
        overlap=True,
    )


planned = {}
for devices, published in measured.items():
    seconds = step_seconds(gpt3, A100, fsdp_on(devices))
    planned[devices] = seconds
    print(f"{devices:5} devices: published {published} s,", end=" ")
    print(f"predicted {seconds:.1f} s")

lines = {"published": measured.items(), "yours": planned.items()}
times_over_devices(lines)

# %% fsdp-published-read [markdown]
# On 1,536 devices, your planner is wrong by a factor of almost four! Most of that time can't have gone into compute.
# Subtract the compute from the published time, and compare what is left with our formula for the communication:

# %% fsdp-where tags=["modelled"]
without_overlap = replace(fsdp_on(1536), overlap=False)
compute = compute_seconds(gpt3, A100, without_overlap)
compute += recompute_seconds(gpt3, A100, without_overlap)
communication = gather_seconds(gpt3, A100, without_overlap)
print(f"compute                {compute:5.1f} s")
print(f"communication          {communication:5.1f} s")
print(f"left for communication {66.8 - compute:5.1f} s")

# %% fsdp-where-read [markdown]
# If your planner is right about the compute, the communication took at least 48.7 s. Our formula says 9 s.
# Even if none of it was hidden, the formula is off by more than a factor of five.
#
# The number of nodes may be to blame: in {lesson:how_long}, an all-reduce over 64 nodes took almost six times as long as our formula says.
# But more devices also left fewer examples to each: on 384 devices a gather served four of them, on 1,536 only one. We don't know.
# We only know of a later FSDP run on 64 nodes of H100s. There a gather served eight examples, and the explorer's estimate was right.
#
# Our 17.6-second plan is in the same position. Each gather serves a single example, and takes just as long as the compute it hides behind, without slack. If it took twice as long, the step would take 34.5 s.
# So don't rent 1,536 devices for this plan before you have measured gathers over many nodes, with `nccl-tests` ({lesson:all_reduce}).
#
# Without FSDP, the same network of 175 billion parameters took 20.8 s a step on 1,536 devices, with tensor parallelism and stages.
# Another way out is **hybrid sharding** (HSDP): FSDP inside a node or a few of them, and data-parallel replicas beyond. Your planner leaves it out.

# %% note-fails [markdown]
# What else can go wrong?
#
# - *Time.* The site's page *How good is the model?* compares the explorer with all the published runs that we found. Usually it is off by up to a third. But where links between nodes are slow, it can put plans in the wrong order.
# - *Memory.* A plan of 79 GB may not fit into 80 GB. Libraries need memory too, for example for the buffers of collectives, and freed memory may lie in pieces too small to be used again. A run on a few nodes tells you how much is missing.
# - *What is left out.* Neither your planner nor the explorer models kernels that wait for their launch, congestion, checkpoints and failures, nor networks with experts, which the glossary explains under *Expert parallelism*.

# %% yours-text [markdown]
# ## 64 H100s and 34 billion parameters
#
# Few of us rent 1,536 devices. So suppose that you have 64 H100s, and want to train 34 billion parameters with 1,024 examples in a batch.
# The planner may use everything that it has learned:

# %% yours tags=["modelled"]
H100 = Machine(
    flops=PEAK_SHARE * 989e12,
    memory=80e9,
    inside=Link(371e9, 3.4e-6),
    between=Link(50e9, 14e-6),
)
mine = Network(blocks=48, width=7680, heads=64)

choices = with_chunks(mine, all_plans(mine, 64, 1024))
choices = with_each(choices, "recompute", ways)
choices = with_each(choices, "zero", [0, 1, 3])
choices = with_each(choices, "overlap", [True])

fast_seconds, fast_best = ranked(mine, H100, choices)[0]
show(fast_best)
print(f"{fast_seconds:.1f} s")

# %% yours-read [markdown]
# It chooses FSDP over all 64 devices, with selective recomputation: no tensor parallelism, no stages.
#
# Can you believe the 14.1 s? The 64 devices are eight nodes. On eight nodes, FSDP has a good record: two published runs on A100s were even faster than the explorer says (page *How good is the model?*). But their gathers served at least 8,192 tokens each. Yours serve 4,096.

# %% worlds-text [markdown]
# The planner also assumes that your links between nodes carry 50 GB/s. They may carry only a quarter of that, if other jobs use the same network
# or if several devices share one adapter. The folded cell finds the best plan for such slow links, and times both plans on both kinds of links:

# %% worlds tags=["known", "modelled"]
slow = replace(H100, between=Link(12.5e9, 14e-6))
slow_seconds, slow_best = ranked(mine, slow, choices)[0]
show(slow_best)

print("\n                    on fast links  on slow links")
for links, plan in [("fast", fast_best), ("slow", slow_best)]:
    on_fast = step_seconds(mine, H100, plan)
    on_slow = step_seconds(mine, slow, plan)
    times = f"{on_fast:12.1f} s {on_slow:12.1f} s"
    print(f"best on {links} links {times}")

# %% worlds-read [markdown]
# Suppose that you count on fast links, and they are slow. Then a step takes 18.3 s where 15.5 s would do: your guess costs you almost 3 s.
# If you count on slow links and they are fast, it costs less than 1 s.
# The extra time that a plan costs you, over the best plan for the same links, is its *regret*.
#
# In the next picture, each point is a plan that fits. Further right means slower on fast links; higher means slower on slow links.
# The gray lines are the best times, so a plan's regrets are its distances from the two lines:

# %% points tags=["modelled"]
from lessons.scale.which_plan.pictures import plans_on_both_links

points = {"zero 3": [], "zero 1": [], "zero 0": []}
for on_fast, plan in ranked(mine, H100, choices):
    on_slow = step_seconds(mine, slow, plan)
    points[f"zero {plan.zero}"].append((on_fast, on_slow))

plans_on_both_links(points)

# %% points-read [markdown]
# No plan lies in the lower left corner, where the two lines cross: none is the best on both kinds of links.
# FSDP is ahead on fast links and falls behind on slow ones. But some plans with ZeRO-1 lie close to both lines.
#
# If you don't know which links you'll get, look at the larger of a plan's two regrets, its *largest regret*.
# The cautious choice is the plan whose largest regret is the smallest. This rule is called *minimax regret*.
#
# **Exercise.** Write `largest_regret(plan)`. On the fast links of `H100`, the best plan takes `fast_seconds`; on the slow links of `slow`, the best plan takes `slow_seconds`.
# Work out how many seconds slower `plan` is on each of the two, and return the larger number.


# %% exercise-regret
def largest_regret(plan):
    # solution begin
    on_fast = step_seconds(mine, H100, plan) - fast_seconds
    on_slow = step_seconds(mine, slow, plan) - slow_seconds
    return max(on_fast, on_slow)
    # solution end


# %%
check("which_plan-regret", largest_regret)

# %% close-text [markdown]
# ## What would you run?
#
# Here are all the plans whose largest regret is less than a second:

# %% close tags=["modelled"]
from course_lib import yours_or_ours

regret_of = yours_or_ours("which_plan-regret", largest_regret)

close = []
for _seconds, plan in ranked(mine, H100, choices):
    its_regret = regret_of(plan)
    if its_regret < 1:
        close.append((its_regret, plan))
close.sort(key=lambda pair: pair[0])

print("regret  data  tensor  stages  chunks  examples  zero  recompute")
for seconds, plan in close:
    sizes = f"{plan.data:5} {plan.tensor:7} {plan.stages:7}"
    sizes += f" {plan.chunks:7} {plan.examples:9} {plan.zero:5}"
    print(f"{seconds:.2f} s {sizes}  {plan.recompute}")

# %% close-read [markdown]
# These eleven lie within 0.2 s, about a hundredth of a step, and no planner can tell them apart. So look at what they have in common.
# All have 16 replicas of four devices, and the four share the network by stages, or by stages and tensor parallelism. All use ZeRO-1 and selective recomputation.
#
# None uses FSDP. But the best FSDP plan isn't far behind: its largest regret is 1.18 s, against 0.78 s. Our planner isn't accurate enough to tell those two apart, either.
# Whether one of the eleven beats FSDP on *your* links, only a measurement can tell.
#
# So here is our answer. *On 64 H100s, we would first measure all-gathers over the eight nodes, and then run 16 replicas of four stages, with ZeRO-1 and selective recomputation.*
# If the all-gathers are as fast as the planner assumes, time a few steps of FSDP, too, and keep the faster plan.
#
# On 1,536 A100s, we would start with the plan of 18.8 s. Its replicas exchange gradients and weights once a step. Those of the 17.6-second plan do so in every micro-batch, and we know of nobody who has measured that.

# %% note-practice [markdown]
# Do practitioners run pipelines or FSDP?
#
# They run both. A [recipe](https://docs.nvidia.com/nemo/megatron-bridge/nightly/apidocs/bridge/bridge.perf_recipes.llama.h100.llama3.html) by NVIDIA
# lists `tensor` 4 and 4 stages for 70 billion parameters on 64 H100s, while MosaicML and torchtitan have measured 70-billion-parameter networks on 64 A100s with FSDP alone.
# Which one is better for you depends on your links: measure these first.

# %% explorer-text [markdown]
# ## Back to 4,096 devices
#
# {Lesson:whole_game} left you with a question. With a batch of 512 examples, the best plan for 4,096 H100s uses only 30 % of their peak.
# With 4,096 examples, a different plan wins, and it uses 45 %. Why?
#
# Now you can answer it. Here is the explorer once more, with the largest network and every technique allowed:

# %% scale-out-again tags=["modelled"]
from lessons.scale.explorer import ScaleOutExplorer

ScaleOutExplorer(
    "146",
    "H100",
    devices=4096,
    examples=512,
    everything=True,
)

# %% explorer-read [markdown]
# Read the first plan. A step takes 778 ms, and a device computes for only 451 ms of them.
# Each of the 64 replicas works through eight micro-batches of one example. The gradients are complete only during the last of these, so at most one backward pass can hide their communication.
# The 159 ms over `batch` are the part it can't hide.
#
# Now give the devices more examples. In the table below, plan 1 is the one that you have just read. Plan 2 has the same mesh and ZeRO-1, but 4,096 examples.
# Plan 3 is the fastest with 4,096 examples and ZeRO-1, and plan 4 is the fastest of all with 4,096 examples:

# %% peak-shares tags=["modelled"]
from lessons.scale.which_plan.explorer_plans import four_plans

four_plans()

# %% peak-read [markdown]
# Compare plans 1 and 2. With eight times as many examples, the devices compute for eight times as long, but they still add up the gradients only once a step.
# So communication over `batch` shrinks from 20 % of the step to 2 %, and waiting in the bubble from 6 % to 2 %. The devices reach 40 % of their peak.
#
# What remains is mostly all-reduces over `model`: 15 % of the step. Plan 3 has two devices along `model` instead of eight, and these communicate far less.
# A replica needs only a quarter of the devices, and ZeRO-1 and selective recomputation make the plan fit. The devices reach 44 %.
# With 512 examples, that would be a bad plan: each of its 256 replicas would get only two of them. Two micro-batches can't be interleaved over eight stages ({lesson:stages}), which would wait for most of the step.
#
# So a larger batch helps twice: *it gives the devices more to compute between two exchanges of gradients, and it lets you use smaller replicas.*
#
# Plan 4 is 2 % faster still. But it is ZeRO-3 over 512 replicas, and gathers weights over many nodes in every micro-batch.
# The explorer, like your planner, gives these gathers the full bandwidth of the links, however many nodes take part.
# So here, too, we would run plan 3, and plan 4 only once its gathers have been measured.

# %% note-more [markdown]
# Could it be more than 45 %?
#
# Hardly in the explorer, whose matrix products reach only 57 % of the peak. Published runs on H100s have reached 50 %.

# %% plain-heading [markdown]
# ## The plain program
#
# [`which_plan.py`](../plain/which_plan.py) is the whole planner in one file, with all that this lesson added to it.
# `python which_plan.py 64 256` ranks the plans for 64 and for 256 devices.

# %% takeaways [markdown]
# ## Takeaways
#
# - Make room first. ZeRO-1 sends no more bytes, selective recomputation adds hardly any FLOPs, and with that room you need fewer stages and smaller tensor-parallel groups. What one technique has already saved, the next can't save again.
# - Trust a planner where it has been compared with measurements. Ours was off by about a quarter at most on nine published runs that it wasn't fitted to. For FSDP on 1,536 devices, it was wrong by a factor of almost four.
# - Don't ask for the fastest plan, but for one whose largest regret is small. When two plans differ by less than the planner's error, look at what the good ones have in common, and measure the rest.
#
# Puzzles 14 and 16 on the page *Puzzles* set limits for what you learned here: ZeRO, and 64 H100s whose links are slow.

# %% closing [markdown]
# ## The end of the course
#
# The course began with four training runs ({lesson:whole_game}). One of them had learned from wrong labels, and TensorFlow had reported no error.
# You recognized it because you could compare it with three others. If it had been the only run, you might not have known.
#
# Comparing is what you have done ever since. You compared eight devices with one, your own optimizer with one that you could trust, and a restored run with one that never stopped.
# In this lesson there were no devices at all, so you compared a planner with runs that others had published. That told you which of its estimates to believe, and which to measure first.
#
# Have you inherited a program with Estimators? {Lesson:estimators} shows how to get off them and keep the numbers.
#
# Now take a model of your own. Train it on one device, and keep the losses. Then split it, and predict what the devices must send each other, and how long a step will take.
# Where your numbers disagree, you will know how to find out why.

# %% score
score("which_plan")

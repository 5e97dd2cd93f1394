# %% [markdown]
# # Which plan would you run today?
#
# Before this lesson is over, your planner will offer you a step of 17.6 s: 145.6 billion parameters on 1,536 A100s, with 2,304 examples in a batch.
# When such steps were really run, in 2021, one took 24.8 s. Training on 300 billion tokens would take 13 days instead of 18.
#
# Would you rent 1,536 devices on the strength of that? We know of nobody who has measured this plan.
# And if your planner is wrong, you'll find out with 1,536 devices running, and every one of them on your bill.
#
# First we'll teach your planner three things that it still leaves out: which values are worth recomputing, what the replicas can share, and which communication can hide behind compute.
# That takes it from 20.7 s to 17.6 s. Then we'll ask where it may be wrong, and look for a plan that you won't regret.
# *Which plan would you run today?*
#
# **After this lesson you can**
#
# - weigh selective recomputation, ZeRO, overlap and FSDP against one another, in seconds and in bytes;
# - judge which of a planner's estimates to trust;
# - choose a plan that you'll hardly regret, whether your links are fast or slow.
#
# **Time:** 25 minutes.
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
# How good is your planner already? Here are the best plans that it has found for this network in the last two lessons:

# %% so-far tags=["modelled"]
from lessons.scale.plan_bars import ladder

steps = {"data and tensor": 39.9, "stages": 21.5, "chunks": 20.7}
ladder(list(steps.items()))

# %% planner-text [markdown]
# The last of these plans keeps all activations. To make them fit, it cuts the network into 16 stages.
# The plan that was really run has 8 stages, and fits because it recomputes every block. For that it pays seven seconds a step, by your planner's count.
# Is there nothing between keeping everything and recomputing everything?
#
# Let's ask the planner. The next cell is the planner of {lesson:stages}, and nothing else. It is folded; just run it.
# In this lesson we'll write five of its functions again, and say each time what is new:
# `recomputed_flops` and `stored_of_block` for recomputation, `state_held` for ZeRO, and `once_seconds` and `microbatch_seconds` for overlap and FSDP.
# The others call these five by name, so from then on they use the new ones.

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
# A plan needs two new fields. They stay switched off until their sections come:


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
# Now look at one block of the plan that was really run. How much of what it keeps is a value for each token, and how much is a value for each *pair* of tokens?

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
print(f"for each token:         {100 * for_tokens / in_all:.0f} %")
for_pairs = in_all - for_tokens
print(f"for each pair of tokens: {100 * for_pairs / in_all:.0f} %")

# %% selective-text [markdown]
# The pairs take 43 %. They are the matrices of attention: in every head, softmax and dropout leave an entry for each pair of tokens.
# If you recompute *only these*, that is **selective recomputation**. In the planner, that is one more case in the compute and one in the memory:


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
# How much of a block does the published plan keep in each of the three ways, and does it fit?

# %% kept tags=["modelled"]
for recompute in ["nothing", "selective", "full"]:
    plan = replace(theirs, recompute=recompute)
    stored = stored_of_block(large, plan)
    kept = 100 * stored / block_activations(large, plan)
    held = sum(memory_held(large, plan).values()) / 1e9
    print(f"{recompute:9}: {kept:3.0f} % of a block kept,", end=" ")
    print(f"{held:3.0f} GB")

# %% kept-read [markdown]
# Without these matrices, the plan comes down from 171 GB to 113 GB. That isn't enough yet, but it is a third less.
# What does it cost?

# %% predict-selective [markdown]
# A network is 12,288 wide, and its sequences have 2,048 tokens. For each token, the forward pass of a block takes 24 · 12,288² FLOPs for products with weights,
# and 4 · 2,048 · 12,288 FLOPs for attention among the tokens.
# Recomputing whole blocks adds 32 % to the compute of a step. How many percent does it add to recompute only the attention among the tokens?
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
# In FLOPs, that is a bargain!
#
# In 2022, a year after the paper with the 1,536 devices, Korthikanti and others measured both ways, with 175 billion parameters on 64 A100s.
# Their selective run also used sequence parallelism, which {lesson:transformer_block} has a note on:

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
# Both estimates are a sixth too long. In the table of {lesson:stages}, the estimate for a network of this width was an eighth too long.
# But what you *gain* comes out about right: selective recomputation, with sequence parallelism, took a quarter less time than full recomputation, and your planner predicts a quarter less.
#
# It needs 34 GB more, though. By your planner's count that makes 86 GB, which doesn't fit.
# In their run it did fit, because sequence parallelism splits the activations that tensor parallelism leaves whole on every device.

# %% note-sequence [markdown]
# How much does sequence parallelism save?
#
# Without attention matrices, a block keeps 10 + 24 / `tensor` bytes for each feature of a token. With sequence parallelism it keeps 34 / `tensor`.
# Each all-reduce becomes a reduce-scatter and an all-gather, which together send as many bytes. But a device then keeps only its part of what enters attention and the dense layers.
# So the backward pass has to gather these two inputs of a block once more, which can hide behind compute. The explorer knows sequence parallelism, without these two all-gathers. Our planner doesn't know it.
#
# FlashAttention, which came later, doesn't store the attention matrices at all. Then selective recomputation has nothing left to save.

# %% zero-text [markdown]
# ## What does every replica hold?
#
# The second thing that the planner leaves out is ZeRO ({lesson:zero_and_fsdp}). Without ZeRO, every replica holds its own copy of the optimizer state. ZeRO gives each replica a share instead.
# ZeRO-1 divides the optimizer state. ZeRO-3, also called FSDP, divides the gradients and the weights too. (ZeRO-2, which divides the gradients but not the weights, we leave out.)


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
# How much memory does the published plan need with each of them?

# %% zero-run tags=["modelled"]
from lessons.scale.plan_bars import plans_against_memory

rows = []
for zero in [0, 1, 3]:
    plan = replace(theirs, recompute="full", zero=zero)
    rows.append((f"zero={zero}", memory_held(large, plan)))
plans_against_memory(rows, A100.memory)

# %% zero-read [markdown]
# ZeRO-1 saves 27 GB on each device, which is more than half of what it held. ZeRO-3 saves 8 GB more.
#
# ZeRO-1 sends no more bytes. Instead of one all-reduce of the gradients,
# there is a reduce-scatter of the gradients and an all-gather of the updated weights, and together they move as many.
# FSDP does cost time. We leave it for later.

# %% overlap-text [markdown]
# ## What can hide?
#
# The third thing is not new: the four smallest of the ten published runs already did it. The all-reduce of the gradients needn't wait for the end of the backward pass.
# As soon as a block has its gradients, their all-reduce can start, while the device moves on to the preceding block.
# This is called **overlap**: communication hides behind compute. Our planner assumes that neither slows the other down.

# %% overlap-picture
from lessons.scale.which_plan.pictures import exposed_exchange

exposed_exchange()

# %% overlap-read [markdown]
# Two parts of the communication can't hide: the gradients of the block whose backward pass comes last,
# and whatever is still running when the backward pass has ended.
# This is **exposed communication**. The time that a step still pays is roughly the larger of the two:


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
# Now let the planner choose what to recompute, then whether to use ZeRO-1. Finally, switch on overlap in all plans.
# `with_each` makes a copy of every plan for each value of a field:


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
# Follow the plan as it changes. Selective recomputation makes room, and eight stages are now enough instead of sixteen.
#
# ZeRO-1 makes more room. Now four stages are enough, and so are tensor-parallel groups of four, whose all-reduces are cheaper.
# A replica takes 16 devices instead of 64, and there are 96 replicas. Overlap leaves the plan as it is, and hides part of its communication.
#
# Here is what each of them saves:

# %% ladder tags=["modelled"]
ladder(list(steps.items()))

# %% note-stages [markdown]
# Are eight stages really better than sixteen?
#
# Hardly: the best plan with 16 stages takes only 0.02 s longer. Your planner charges every stage for the logits, and that decides between the two.
# If the last stage had fewer blocks instead, so that all stages took equally long, 16 stages would win.

# %% ladder-read [markdown]
# Together they bring the step from 39.9 s to 18.8 s, and stages save most of it. But is that because they came first?

# %% predict-order [markdown]
# A planner starts with tensor and data parallelism alone. Each of the 48 devices of a replica holds 49 GB for its parameters, and the activations have to fit beside them.
# Now it may use one technique after another: first recomputation, then ZeRO-1, then overlap, and stages only at the end. Which technique saves most?
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
# And what do the others save?

# %% other-order tags=["modelled"]
ladder(list(other.items()))

# %% other-order-read [markdown]
# Stages save only 4.5 s now. What one technique has already saved, the next can't save again.
#
# And recomputation by itself saves nothing. On 32 devices, the parameters alone take 73 of 80 GB. Only full recomputation squeezes the activations into the remaining 7 GB, and that costs more time than the smaller replica saves. So 48 devices remain best.
#
# By your planner's count, a plan without stages takes 23.8 s with ZeRO-1, less than the 24.8 s published.
# They used stages, but stages weren't the only way.
#
# Would you really get 18.8 s, where they needed 24.8 s? One thing you can check: does the choice depend on the one number that we fitted?
# Here is the best plan when matrix products reach less of the peak, and when they reach more:

# %% shares tags=["modelled"]
for peak_share in [0.44, 0.66]:
    machine = replace(A100, flops=peak_share * 312e12)
    seconds, plan = ranked(large, machine, overlapping)[0]
    percent = 100 * peak_share
    print(f"{percent:.0f} % of the peak: {seconds:.1f} s", end=", ")
    print("the same plan" if plan == best else "a different plan")

# %% shares-read [markdown]
# The time changes by seconds, but the plan stays the same.
# So an error in this number hardly changes the choice. The next error is another matter.

# %% fsdp-text [markdown]
# ## Too good to be true
#
# One thing is still missing: the time that FSDP takes. A device gathers the weights of each block twice, for the forward and for the backward pass,
# and a reduce-scatter adds up the gradients. It does so in *every* micro-batch, so nothing is left for the end of the step.
# Each of the three takes half as long as an all-reduce, and with overlap they hide behind compute, too:


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
# What does the planner choose if it may use FSDP?

# %% fsdp-run tags=["modelled"]
with_fsdp = with_each(recomputing, "zero", [0, 1, 3])
with_fsdp = with_each(with_fsdp, "overlap", [True])
seconds, best = ranked(large, A100, with_fsdp)[0]
report(seconds, best)

# %% fsdp-read [markdown]
# There are the 17.6 s, and no pipeline at all! Your planner has dropped the stages. It splits each weight between two devices, and then over 768 replicas.
# If that is true, we could have saved ourselves most of the last two lessons.
#
# The paper of 2021 measured FSDP, too, and calls it ZeRO-3: 175 billion parameters and a batch of 1,536 examples, on 384, 768 and 1,536 devices.

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
# On 1,536 devices, the estimate is wrong by a factor of almost four!
# Most of that time can't have gone into compute. Take the published time, subtract the compute, and compare the rest with our formula for the communication:

# %% fsdp-where tags=["modelled"]
without_overlap = replace(fsdp_on(1536), overlap=False)
compute = compute_seconds(gpt3, A100, without_overlap)
compute += recompute_seconds(gpt3, A100, without_overlap)
communication = gather_seconds(gpt3, A100, without_overlap)
print(f"compute                {compute:5.1f} s")
print(f"communication          {communication:5.1f} s")
print(f"left for communication {66.8 - compute:5.1f} s")

# %% fsdp-where-read [markdown]
# If our formula is right about compute, the communication must have taken at least 48.7 s, where the formula says 9 s.
# Even if none of it was hidden, the formula is off by more than a factor of five.
#
# You have met such a factor before: on 64 nodes, an all-reduce took almost six times as long as our formula says ({lesson:how_long}).
# But is the number of nodes to blame? We don't know. On more devices, each gather also served fewer tokens, and perhaps nothing overlapped.
# In a later FSDP run, on 64 nodes of H100s, a gather served eight examples instead of one, and the explorer's estimate was right.
#
# In our 17.6 s plan, each gather serves one example, and the communication takes just as long as the compute behind which it hides.
# If it took twice as long, the step would take 34.5 s.
# So don't rent 1,536 devices for it before you have measured gathers over many nodes (`nccl-tests`).
# With tensor parallelism and stages, the same network of 175 billion parameters took 20.8 s a step on 1,536 devices.
# Another way out is **hybrid sharding** (HSDP): FSDP inside a node or a few of them, and data-parallel replicas beyond. Our planner leaves it out.

# %% note-fails [markdown]
# Where else does it fail?
#
# The site's page *How good is the model?* compares the explorer with all the published runs that we found.
# Usually it is off by up to a third. But where links between nodes are slow, it can put plans in the wrong order.
# Neither models much that happens on a real machine: kernels that wait for their launch, congestion, checkpoints, failures.

# %% explorer-text [markdown]
# ## Back to 4,096 devices
#
# Here is the explorer of {lesson:whole_game} once more: the largest network on 4,096 H100s, with every technique allowed.
# It left you with a question. With a batch of 512 examples, the devices reach only 30 % of their peak.
# With 4,096 examples, a different plan wins, and they reach 45 %. Why?

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
# Read the first plan: stages, chunks and ZeRO-1, and nothing recomputed. A step takes 778 ms, and a device computes for only 451 ms of them.
# Each of the 64 replicas takes eight micro-batches of one example.
# The gradients are complete only during the last of them, so they can hide behind one backward pass at most. What doesn't fit behind it is exposed: 159 ms.
#
# What do more examples change? Below are four plans of the explorer. The first is the winner with 512 examples.
# The second has the same mesh and ZeRO-1, but 4,096 examples. The third is the fastest with 4,096 examples and ZeRO-1, and the last one is the winner there:

# %% peak-shares tags=["modelled"]
from lessons.scale.which_plan.explorer_plans import four_plans

four_plans()

# %% peak-read [markdown]
# Compare the first two. Eight times as many examples keep the devices computing eight times as long, but the gradients are still added up only once a step.
# So communication over `batch` shrinks from 20 % of the step to 2 %, and waiting in the bubble from 6 % to 2 %. That brings the devices to 40 % of their peak.
#
# Most of what remains is all-reduces over `model`, 15 % of the step. The third plan has four times as many replicas, so each needs only a quarter of the devices,
# and two devices along `model` communicate far less than eight. ZeRO-1 and selective recomputation make it fit. That brings 44 %.
# With 512 examples that would be a bad plan: each of 256 replicas would have only two examples, so its eight stages would wait for most of the step.
#
# So here is the answer: *a larger batch gives the devices more to compute between two exchanges of gradients, and lets you use smaller replicas.*
#
# The fourth plan is the fastest of all. Would you rent 4,096 devices for it?
#
# Not before you have measured it. It is ZeRO-3 over 512 replicas, so it gathers weights over many nodes in every micro-batch,
# and that is the kind of estimate that was wrong by a factor of almost four.
# The third plan is only 2 % slower by the explorer's count, and it doesn't depend on these gathers.

# %% note-more [markdown]
# Could it be more than 45 %?
#
# Hardly in the explorer, whose matrix products reach only 57 % of the peak. Published runs on H100s have reached 50 %.

# %% yours-text [markdown]
# ## 64 H100s and 34 billion parameters
#
# Few of us rent 4,096 devices. So, your turn: you have 64 H100s and want to train 34 billion parameters, with 1,024 examples in a batch. What do you run?

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
# It chose FSDP over all 64 devices, with selective recomputation and no other way of splitting the network. Can you believe the 14.1 s? On eight nodes of A100s, two published FSDP runs were even faster than the explorer says.
# But each of their gathers served 8,192 tokens or more, and here it serves 4,096.

# %% note-room [markdown]
# Does a plan of 79 GB fit into 80 GB?
#
# By the planner's rule it does. On a real device, libraries need memory of their own, for the buffers of collectives for example,
# and memory that has been freed may lie in pieces too small to be used again. Neither our planner nor the explorer leaves room for that.
# A run on a few nodes tells you how much is missing.

# %% worlds-text [markdown]
# But suppose that your links between nodes carry only a quarter of what we assumed. Perhaps other jobs use the same network,
# or several devices share one adapter. Here is the best plan for such slow links, and then the time of both plans on both kinds of links.
# The code is folded:

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
# Suppose that you count on fast links, and they are slow. Then a step takes 18.3 s where 15.5 s would do, so your wrong guess costs you almost 3 s.
# If you count on slow links and they are fast, it costs less than 1 s. The extra time that a plan costs you in one case, over the best plan for that case, is its *regret*.
#
# These were only two plans. Each point below is a plan that fits. Further right means slower on fast links; higher means slower on slow links.
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
# **Exercise.** Write `largest_regret(plan)`. Work out by how many seconds the plan is slower than the best plan on fast links, which takes `fast_seconds`,
# and by how many it is slower than the best plan on slow links, which takes `slow_seconds`. Return the larger of the two.


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
# Which plans have a largest regret of less than a second?

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
# There are eleven, and they lie within 0.2 s of one another, hardly more than a hundredth of a step. No planner can tell these apart.
#
# But look at what they have in common. All have 16 replicas of four devices, and these four share the network by stages, or by stages and tensor parallelism. All use ZeRO-1 and selective recomputation.
# None of them uses FSDP, but the best plan with FSDP follows at 1.18 s, and by the planner's error that is no difference either.
#
# That is as far as your planner can take you. Whether one of these beats FSDP on *your* links, only a measurement can tell.

# %% note-practice [markdown]
# Do practitioners run pipelines or FSDP?
#
# They run both. A [recipe](https://docs.nvidia.com/nemo/megatron-bridge/nightly/apidocs/bridge/bridge.perf_recipes.llama.h100.llama3.html) by NVIDIA
# lists `tensor` 4 and 4 stages for 70 billion parameters on 64 H100s, while MosaicML and torchtitan have measured 70-billion-parameter networks on 64 A100s with FSDP alone.
# Which one is better for you depends on your links: measure these first.

# %% note-experts [markdown]
# What about experts?
#
# In a **mixture of experts**, each token passes through only a few of a block's dense layers, its experts.
# **Expert parallelism** puts the experts on different devices. Two all-to-alls in each block carry the tokens there and back, and two more carry the gradients.
# Neither our planner nor the explorer includes experts.

# %% plain-heading [markdown]
# ## The plain program
#
# [`which_plan.py`](../plain/which_plan.py) is the whole planner in one file, with all that this lesson added to it.
# `python which_plan.py 64 256` ranks the plans for 64 and for 256 devices.

# %% takeaways [markdown]
# ## Takeaways
#
# - Make room first. ZeRO-1 sends no more bytes, selective recomputation adds hardly any FLOPs, and with that room you need fewer stages and smaller tensor-parallel groups. What one technique has already saved, the next can't save again.
# - Trust a planner where it has been compared with measurements. Ours was off by about a quarter at most on ten runs that communicate little over `data`, and by up to 38 % on later programs. For FSDP on 1,536 devices, it was wrong by a factor of almost four.
# - Don't ask for the fastest plan, but for one whose largest regret is small. When two plans differ by less than the planner's error, it can't choose between them: look at what the good ones have in common.
#
# Puzzles 14 and 16 on the page *Puzzles* set limits for what you learned here: ZeRO, and 64 H100s whose links are slow.

# %% closing [markdown]
# ## The end of the course
#
# The course began with four training runs ({lesson:whole_game}). One of them had learned from wrong labels, and TensorFlow had reported no error.
# You recognized it because you could compare it with three others. Had it been the only run, you might never have known.
#
# Comparing is what you have done ever since. You compared eight devices with one, an optimizer of your own with one that you could trust, and a restored run with one that never stopped.
# In this lesson there were no devices at all, so you compared a planner with runs that others had published. That told you which of its estimates to believe, and which to measure first.
#
# Have you inherited a program with Estimators? {Lesson:estimators} shows how to get off them and keep the numbers.
#
# Now take a model of your own. Train it on one device, and keep the losses. Then split it, and predict what the devices must send each other, and how long a step will take.
# Where your numbers disagree, you will know how to find out why.

# %% score
score("which_plan")

# %% [markdown]
# # What does my planner not know?
#
# Your planner's best plan takes 39.9 s for a step: 145.6 billion parameters, 1,536 A100s.
# The people who trained this network needed 24.8 s.
#
# Over 300 billion tokens, that is 29 days against their 18, and you pay for 1,536 devices for eleven days more.
# You have the same network, the same devices and the same links. So they must know something that your planner doesn't.
#
# What is it? We'll find the answers one by one, and each adds a few lines to the planner.
# Before long it will predict a step that is *faster* than the published one.
# Then you'll have to ask: *how much of this should I believe?*
#
# **After this lesson you can**
#
# - say what pipeline stages save and what their bubbles cost, and read both off a schedule;
# - weigh recomputation, ZeRO, overlap and FSDP against one another, in seconds and in bytes;
# - judge which of a planner's estimates to trust, and choose a plan that relies on those alone.
#
# **Time:** 50 minutes.
# **You need to know:** the planner of {lesson:how_long}, and ZeRO, FSDP and recomputation from {lesson:zero_and_fsdp}.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% note-run [markdown]
# Where was all this run?
#
# On a CPU. What this lesson says about A100s and H100s is arithmetic, and we compare it with what other people measured and published.

# %% planner-text [markdown]
# ## A cut that needs no all-reduce
#
# The next three cells are the planner of {lesson:how_long}. They are folded; just run them.

# %% planner tags=["known"]
import math
from dataclasses import dataclass, replace


@dataclass
class Link:
    bandwidth: float  # bytes per second
    latency: float  # seconds


INSIDE = Link(240e9, 3.4e-6)
BETWEEN = Link(25e9, 14e-6)
NODE = 8


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


# %% planner-2 tags=["known"]
SEQUENCE = 2048
VOCABULARY = 51200
PEAK_SHARE = 0.52


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


A100 = Machine(PEAK_SHARE * 312e12, 80e9, INSIDE, BETWEEN)


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


# %% planner-3 tags=["known"]
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


def parameters_held(network, plan):
    in_blocks = 12 * network.width**2 * network.blocks
    embedding = network.width * VOCABULARY
    return (in_blocks + embedding) / plan.tensor


def gradient_seconds(network, machine, plan):
    num_bytes = 2 * parameters_held(network, plan)
    return over_data(machine, plan, num_bytes)


# %% plan-text [markdown]
# What has really changed is `Plan`. It now has a field for everything that this lesson adds, and comments say which section begins to use it.
# Until then a field keeps its default, which means that the plan does without.
# (`stages` is the size of the mesh dimension that the explorer calls `stage`, as `data` is that of `batch`, and `tensor` that of `model`.)


# %% plan
@dataclass
class Plan:
    data: int
    tensor: int
    examples: int  # micro-batch size
    microbatches: int
    # From "Faster than published?" on
    stages: int = 1
    chunks: int = 1
    # From "What did they run?" on
    recompute: str = "nothing"
    # From "What would you run today?" on
    zero: int = 0
    overlap: bool = False


# %% before-text [markdown]
# Where do the 39.9 s go? Here is your planner's best plan once more, part by part:

# %% before tags=["modelled"]
large = Network(blocks=80, width=12288, heads=96)
first = Plan(data=32, tensor=48, examples=1, microbatches=72)

compute = 72 * compute_seconds(large, A100, first)
tensor = 72 * tensor_seconds(large, A100, first)
gradients = gradient_seconds(large, A100, first)
print(f"compute                 {compute:5.1f} s")
print(f"all-reduces over tensor {tensor:5.1f} s")
print(f"all-reduce over data    {gradients:5.1f} s")

# %% stages-text [markdown]
# More than half of the step goes into all-reduces over `tensor`.
# One copy of the network is spread over 48 devices, which are six nodes, so every one of these all-reduces has to leave its node.
#
# Tensor parallelism cuts *through* the blocks, so the devices have to add up in every block.
# What if you cut *between* the blocks? Here are both cuts, for four blocks and four devices:

# %% two-cuts
from lessons.scale.stages.pictures import two_cuts

two_cuts()

# %% two-cuts-read [markdown]
# On the right every block stays whole, and so do its sums. No all-reduce is needed.
# Each device takes a micro-batch through its own blocks and sends the activations on to the next device.
# In the backward pass, the gradients of these activations travel back the same way, and have just as many bytes.
# This is **pipeline parallelism**, and each part of the network is a **stage**. (The stages of ZeRO are something else.)
#
# Let's give every stage a whole node. The 80 blocks make eight stages of ten,
# and inside its node each stage is split by tensor parallelism, as before.
# A replica then fills eight nodes instead of six. So there are 24 replicas instead of 32, with 96 micro-batches each.
# What does that save? A stage is just a network with fewer blocks, so your planner can tell you as it is:

# %% stage-run tags=["modelled"]
ten_blocks = Network(blocks=10, width=12288, heads=96)
in_a_node = Plan(data=24, tensor=8, examples=1, microbatches=96)

before = tensor_seconds(large, A100, first)
after = tensor_seconds(ten_blocks, A100, in_a_node)
# All eight hold the same activations, so each sends an eighth
num_bytes = 2 * SEQUENCE * large.width / 8
message = BETWEEN.latency + num_bytes / BETWEEN.bandwidth

print("A micro-batch of one example")
print(f"all-reduces, 48 devices: {1000 * before:5.1f} ms")
print(f"all-reduces of a stage:  {1000 * after:5.1f} ms")
print(f"its two messages:        {1000 * 2 * message:5.1f} ms")

# %% stage-run-read [markdown]
# Almost nineteen times as fast! A stage has an eighth of the blocks, so it makes an eighth of the all-reduces.
# And since none of them leaves the node, each takes less than half as long.
# The two messages, one forward and one backward, hardly count. There must be a catch.

# %% schedule-text [markdown]
# ## Who works when?
#
# A stage can't begin before the stage in front of it has finished. Here are four stages with four micro-batches:

# %% schedule
from lessons.scale.stages.schedules import schedule

schedule(stages=4, microbatches=4)

# %% schedule-read [markdown]
# Look at the last stage, the lowest lane. It can't begin before micro-batch 1 has come through the three stages in front of it.
# The first stage begins at once, but then it has to wait until gradients come back to it.
#
# Now count. Each micro-batch keeps a stage busy for three slots, one forward and two backward.
# So with four micro-batches a stage works for twelve slots. In the other nine it is idle.
# This idle time is the **bubble** of the pipeline.
# Nine slots are as long as three micro-batches: one for each of the other three stages.

# %% predict-bubble [markdown]
# With 4 stages and 4 micro-batches, each stage of a pipeline is idle for as long as 3 micro-batches take. That is 43 % of the step.
# Now a pipeline of 8 stages takes 48 micro-batches a step. What percentage of the step is a stage idle?
#
# - [x] `13`
#   A stage waits for 7 micro-batches, one for each of the other stages. The step takes as long as 48 + 7 micro-batches, and 7 of 55 are 13 %.
# - [ ] `15`
#   The bubble is as long as 7 micro-batches, and 7 of 48 are 15 %. But the step is longer than these 48: it takes as long as 55.
# - [ ] `43`
#   With more micro-batches, a stage works longer. Its bubble doesn't grow with them: that depends on the number of stages alone.
# - [ ] `87`
#   That is how much of the step a stage works: 48 of 55.

# %% reveal-bubble
microbatches, bubble = 48, 8 - 1
reveal("stages-bubble", round(100 * bubble / (microbatches + bubble)))

# %% bubble-read [markdown]
# So with $p$ stages and $m$ micro-batches, a step takes as long as $m + p - 1$ micro-batches on one stage.
#
# What can you do about the bubble? You can use more micro-batches.
# But a batch has only so many examples, and the data-parallel replicas share them.
#
# Or you deal out the blocks differently. Instead of ten consecutive blocks, give each stage two **chunks** of five.
# The first stage gets blocks 1 to 5 and blocks 41 to 45, the second stage gets blocks 6 to 10 and 46 to 50, and so on.
# Each micro-batch then runs through all the stages twice.
# This schedule is called **interleaved**, and its chunks are also called *virtual stages*.
# (They have nothing to do with the chunks that a ring sends.)

# %% interleaved
schedule(stages=4, microbatches=4, chunks=2)

# %% interleaved-read [markdown]
# Count the idle slots. There are nine again! But a slot is now the forward pass of *one* chunk, so it is half as long,
# and the bubble has shrunk to half its size. In return, there are twice as many messages.
# And the number of micro-batches has to be a multiple of the number of stages.
# The stages take them in groups of that size: the whole group goes through the first chunks, then through the second.
#
# **Exercise 1.** Write `pipeline_seconds(one, stages, microbatches, chunks)`.
# `one` is the time that a stage needs for one micro-batch, forward and backward, through all of its chunks.
# Return how long a whole step takes.


# %% exercise-pipeline
def pipeline_seconds(one, stages, microbatches, chunks):
    # solution begin
    bubble = (stages - 1) / chunks
    return (microbatches + bubble) * one
    # solution end


# %%
check("stages-pipeline", pipeline_seconds)

# %% step-text [markdown]
# ## Faster than published?
#
# Now give your planner stages. It needs the network of a single stage, and the messages that a stage sends for each micro-batch:


# %% stage
def one_stage(network, plan):
    # A copy of the network, with other blocks
    return replace(network, blocks=network.blocks // plan.stages)


def send_seconds(network, machine, plan):
    if plan.stages == 1:
        return 0
    num_bytes = 2 * plan.examples * SEQUENCE * network.width
    piece = num_bytes / plan.tensor
    link = machine.between
    message = link.latency + piece / link.bandwidth
    return 2 * plan.chunks * message


# %% step-why [markdown]
# All stages wait for the slowest one. That is the last stage, which also computes the logits; so we charge the logits to every stage.
# For memory we do the same with the embedding, because the plan must fit on the fullest device.
#
# The time of a step is a sum: first what every micro-batch takes, then what comes only once a step.
# The sections that follow will add lines to it:


# %% step
from course_lib import yours_or_ours

pipeline = yours_or_ours("stages-pipeline", pipeline_seconds)


def step_seconds(network, machine, plan):
    stage = one_stage(network, plan)

    one = compute_seconds(stage, machine, plan)
    one += tensor_seconds(stage, machine, plan)
    one += send_seconds(stage, machine, plan)

    many = plan.microbatches
    seconds = pipeline(one, plan.stages, many, plan.chunks)
    seconds += gradient_seconds(stage, machine, plan)
    return seconds


# %% flight-text [markdown]
# And the memory? A stage has to keep the activations of a micro-batch until the micro-batch comes back in the backward pass.
# Until then, the micro-batch is *in flight*. Here is a step of eight micro-batches. The top row counts those in flight at stage 0:

# %% flight-picture
schedule(stages=4, microbatches=8, count_in_flight=True)

# %% flight-read [markdown]
# There are eight micro-batches, but never more than four in flight!
# From its first backward pass on, stage 0 alternates: only when one micro-batch has come back does the next one start.
# That alternation is the point of the schedule, and gives it its name: **1F1B**, one forward, one backward.
# With a hundred micro-batches there would still be four in flight, as many as there are stages.
#
# Interleaving adds a few. Without chunks, stage 0 makes $p$ forward passes before its first backward pass.
# With $v$ chunks it makes $pv + p - 1$, if there are enough micro-batches. (In the picture above there are only four, so it stops at 8 instead of 11.)
# Each of these goes through a single chunk, so it holds $1/v$ of a micro-batch's activations.
# Together that is as much as $p + (p - 1)/v$ micro-batches:


# %% flight
def in_flight(plan):
    waiting = plan.stages
    if plan.chunks > 1:
        waiting += (plan.stages - 1) / plan.chunks
    return min(waiting, plan.microbatches)


# %% plans-text [markdown]
# The next two cells are folded. The first works out the memory of a plan, from the micro-batches in flight and the 16 bytes of each parameter.
# It already has the cases of later sections, and we'll quote them there.
# The second lists plans, with every number of stages and chunks that divides the blocks. It ranks those that fit, and prints a plan.


# %% memory tags=["known"]
def state_held(network, plan):
    parameters = parameters_held(network, plan)
    variables, gradients = 2 * parameters, 2 * parameters
    optimizer = 12 * parameters
    if plan.zero >= 1:
        optimizer /= plan.data
    if plan.zero == 3:
        gradients /= plan.data
        # Two blocks are whole: one that computes, and the next
        whole = 2 * 2 * 12 * network.width**2 / plan.tensor
        variables = variables / plan.data + whole
    return {
        "variables": variables,
        "gradients": gradients,
        "optimizer": optimizer,
    }


def block_activations(network, plan):
    tokens = plan.examples * SEQUENCE
    values = tokens * network.width * (10 + 24 / plan.tensor)
    pairs = plan.examples * SEQUENCE**2
    return values + 5 * pairs * network.heads / plan.tensor


def stored_of_block(network, plan):
    tokens = plan.examples * SEQUENCE
    if plan.recompute == "full":
        return 2 * tokens * network.width
    if plan.recompute == "selective":
        return tokens * network.width * (10 + 24 / plan.tensor)
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


# %% plans tags=["known"]
PUBLISHED = 24.8


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


def with_each(plans, name, values):
    # Each plan with each of these values in the field of that name
    found = []
    for plan in plans:
        for value in values:
            found.append(replace(plan, **{name: value}))
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


def report(seconds, plan):
    show(plan)
    held = sum(memory_held(large, plan).values())
    print(f"{held / 1e9:.1f} GB, {seconds:.1f} s,", end=" ")
    print(f"{seconds / PUBLISHED:.2f} of the published time\n")


# %% stages-best-text [markdown]
# What is the best plan with stages? And with stages and chunks?

# %% stages-best tags=["modelled"]
steps = {"data and tensor": 39.9}

plans = all_plans(large, 1536, 2304)
seconds, best = ranked(large, A100, plans)[0]
report(seconds, best)
steps["stages"] = round(seconds, 1)

plans = with_chunks(large, plans)
seconds, best = ranked(large, A100, plans)[0]
report(seconds, best)
steps["chunks"] = round(seconds, 1)

# %% stages-best-read [markdown]
# Stages bring the step from 39.9 s down to 21.5 s, and chunks bring it to 20.7 s. So here is a first answer: your planner didn't know pipelines.
#
# Look at what it chose. Each stage fills one node, as it did when we tried it by hand, but there are sixteen of them.
# A device then holds only an eighth of five blocks, so all activations fit as well.
# A replica takes 128 devices. So there are 12 replicas, and each takes its 192 examples one at a time.
# With five chunks, the bubble of 16 stages is as long as three micro-batches. Beside 192, that hardly counts.
#
# But look at the ratio: 0.83. Your planner predicts a step that is *faster* than that of the people who really ran it.
# Are they so bad at their job? Or is there something else that your planner doesn't know?
#
# ## What did they run?
#
# The paper tells us: `tensor` 8, 8 stages of 2 chunks, and a micro-batch size of 2.
# What does your planner say about exactly this plan? And how does its memory compare with that of the planner's own choice?

# %% theirs tags=["modelled"]
from lessons.scale.plan_bars import plans_against_memory

theirs = Plan(
    data=24,
    tensor=8,
    examples=2,
    microbatches=48,
    stages=8,
    chunks=2,
)
print(f"{step_seconds(large, A100, theirs):.1f} s")

rows = []
for plan in [best, theirs]:
    label = f"stages {plan.stages}, chunks {plan.chunks}, "
    label += f"examples {plan.examples}"
    rows.append((label, memory_held(large, plan)))
plans_against_memory(rows, A100.memory)

# %% theirs-read [markdown]
# Your planner predicts 20.9 s for their plan, hardly more than the 20.7 s of the plan that it chose itself.
# But by its count, their plan doesn't fit! The activations alone would need more than one and a half times the memory of a device.
#
# So they can't have kept all activations, and indeed they didn't. They recomputed every block, as you did in {lesson:zero_and_fsdp}:
# a device keeps only the input of a block, and computes the block a second time when the backward pass gets there.
# This is called full recomputation.

# %% predict-recompute [markdown]
# Measured in seconds, a step of the published plan takes 20.9 if every device keeps all of its activations. Most of that is compute,
# and the backward pass has twice the compute of the forward pass.
# Now each block is recomputed in the backward pass, together with the all-reduces of its forward pass.
# About how many seconds does a step take?
#
# - [ ] `21` 21, as before
#   That would be so if recomputing cost nothing. But it is compute, and most of the time is compute.
# - [x] `28`
#   The compute has four parts instead of three: forward, forward again, and a backward pass that counts twice. That is a third more.
#   Of the four all-reduces of a block, the two of the forward pass are made again.
# - [ ] `35`
#   That is two thirds more, as if the backward pass were repeated. But it is the forward pass that is repeated.
# - [ ] `42` 42, twice as much
#   Not the whole step is repeated, but one of three parts of its compute.

# %% reveal-recompute
stage = one_stage(large, theirs)
again = compute_seconds(stage, A100, theirs) / 3
again += tensor_seconds(stage, A100, theirs) / 2

seconds = step_seconds(large, A100, theirs)
seconds += pipeline(again, stages=8, microbatches=48, chunks=2)
reveal("stages-recompute", round(seconds))

# %% recompute-text [markdown]
# Now put recomputation into the planner. Each micro-batch computes its blocks once more, and makes half of its all-reduces once more.
# These are two new lines in the sum:


# %% recompute
def recomputed_flops(network, plan):
    # Of a token, in one block
    block_flops = 2 * 12 * network.width**2
    attention_flops = 2 * 2 * SEQUENCE * network.width
    if plan.recompute == "full":
        return block_flops + attention_flops
    if plan.recompute == "selective":  # of this, more below
        return attention_flops
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


def step_seconds(network, machine, plan):
    stage = one_stage(network, plan)

    one = compute_seconds(stage, machine, plan)
    one += tensor_seconds(stage, machine, plan)
    one += send_seconds(stage, machine, plan)
    one += recompute_seconds(stage, machine, plan)  # new
    one += tensor_again_seconds(stage, machine, plan)  # new

    many = plan.microbatches
    seconds = pipeline(one, plan.stages, many, plan.chunks)
    seconds += gradient_seconds(stage, machine, plan)
    return seconds


# %% recompute-run-text [markdown]
# And the memory? Each block now keeps only its input, 2 bytes for each feature of a token. In the folded cell, this is the case
#
# ```python
#     if plan.recompute == "full":
#         return 2 * tokens * network.width
# ```
#
# But while one block is being recomputed, all of *its* activations exist again, so `activations_held` adds those of one block.
# Does their plan fit now, and was 28 s right?

# %% recompute-run tags=["modelled"]
for recompute in ["nothing", "full"]:
    plan = replace(theirs, recompute=recompute)
    report(step_seconds(large, A100, plan), plan)

# %% recompute-read [markdown]
# With full recomputation their plan fits, with 30 GB to spare. So that is the second answer, and these people weren't bad at their job:
# without recomputation, their plan wouldn't fit. By the planner's count it cost them seven seconds a step.
#
# It also costs the eight days that {lesson:how_long} opened with. There, GPT-3 would need 34 days on 1,024 A100s.
# With full recomputation, one of four parts of the compute is done for a second time, and a quarter of 34 days is eight and a half.
#
# How good is the planner now? For the plan that was really run, it used to predict 16 % less than was published.
# Now it predicts 12 % more.
#
# And did they have to recompute? Your planner says no: its own plan of 20.7 s avoids it, with 16 stages of 5 chunks.
# But nobody has measured that plan. All that we can check is theirs.

# %% runs-text [markdown]
# ## How far can you trust it?
#
# The paper has ten such runs, from 1.7 to 1,008 billion parameters, all with full recomputation.
# One of them, with 18.4 billion parameters, gave the planner its one fitted number: 52 % of an A100's peak.
# The other nine are real predictions.
#
# In the four smallest runs, which have a single stage, gradients were added up *during* the backward pass.
# So the planner leaves their all-reduce out here. The code is folded:

# %% runs tags=["known", "modelled"]
from lessons.scale.stages.pictures import error_over_width
from lessons.scale.stages.runs import ten_runs

errors = []
print("parameters   width  published  predicted  error")
for run in ten_runs():
    network = Network(run.blocks, run.width, run.heads)
    plan = Plan(
        data=run.data,
        tensor=run.tensor,
        examples=run.examples,
        microbatches=run.microbatches,
        stages=run.stages,
        chunks=run.chunks,
        recompute="full",
    )
    seconds = step_seconds(network, A100, plan)
    if run.overlap:
        seconds -= gradient_seconds(network, A100, plan)
    error = 100 * (seconds / run.seconds - 1)
    errors.append((run.width, error))
    times = f"{run.seconds:8.1f} s {seconds:8.1f} s"
    print(f"{run.name:>10} {run.width:7} {times} {error:+5.0f} %")

error_over_width(errors)

# %% runs-read [markdown]
# The largest error is about a quarter, on devices that we don't have!
# But look at the curve. For small networks the estimates are too short, and for large ones too long.
# With one exception, at a width of 10,240, the error grows with the width. That isn't noise.
# What is behind it? The table can't tell. The planner takes the same 52 % of the peak for all networks,
# but tensor parallelism, stages and overlap also change from row to row.
#
# If the error depends only on the network, it does little harm. You compare plans for *one* network,
# so all of your estimates are too long together, or too short together, and the ranking hardly suffers.
# Then you may ask the planner which plan is better, though not to the last percent.

# %% pause [markdown]
# ## A place to stop for today
#
# You have found out what your planner didn't know: they ran a pipeline, and recomputed every block.
# The rest of the lesson is about what you would run today, and where the planner goes badly wrong.
# This is a good place to stop. When you come back, first run all the cells above once more.

# %% selective-text [markdown]
# ## What would you run today?
#
# That paper dates from 2021. Since then, people have found ways to save more.
# The first asks what is worth recomputing, because some of what a block keeps is cheap to recompute.
# Look at attention: in every head, softmax and dropout leave matrices with an entry for each pair of tokens.
# If you recompute *only these*, that is selective recomputation. `recomputed_flops` has this case already, and so has the memory:
#
# ```python
#     if plan.recompute == "selective":
#         return tokens * network.width * (10 + 24 / plan.tensor)
# ```
#
# What does selective recomputation cost in their plan, and what does it save?

# %% selective-cost tags=["modelled"]
stage = one_stage(large, theirs)
for recompute in ["full", "selective"]:
    plan = replace(theirs, recompute=recompute)
    again = recompute_seconds(stage, A100, plan)
    compute = compute_seconds(stage, A100, plan)
    stored = stored_of_block(stage, plan)
    more = 100 * again / compute
    kept = 100 * stored / block_activations(stage, plan)
    print(f"{recompute:9}: {more:3.0f} % more compute,", end=" ")
    print(f"{kept:3.0f} % of the activations kept")

# %% selective-cost-read [markdown]
# In their plan, the attention matrices are 43 % of the activations, and recomputing them adds 1 % to the compute. That is a bargain!
#
# A year later, Korthikanti and others measured both ways, with 175 billion parameters on 64 A100s.
# Their selective run also used sequence parallelism, which {lesson:transformer_block} has a note on:

# %% selective tags=["known", "modelled"]
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

# %% selective-read [markdown]
# Both estimates are a sixth too long. In the table above, the network of this width was an eighth too long.
# But what you *gain* comes out about right: selective recomputation took a quarter less time than full recomputation, and your planner predicts a quarter less.
#
# It needs 34 GB more, though. By your planner's count that makes 86 GB, which doesn't fit.
# In their run it did fit, because sequence parallelism splits the activations that tensor parallelism leaves whole on every device.

# %% note-sequence [markdown]
# How much does sequence parallelism save?
#
# Without attention matrices, a block keeps 10 + 24 / `tensor` bytes for each feature of a token. With sequence parallelism it keeps 34 / `tensor`.
# Each all-reduce becomes a reduce-scatter and an all-gather, which together take as long.
# The explorer knows sequence parallelism. Our planner doesn't.
#
# FlashAttention, which came later, doesn't store the attention matrices at all.

# %% zero-text [markdown]
# The second way is the ZeRO of {lesson:zero_and_fsdp}. It divides among the replicas what each would otherwise hold in full.
# ZeRO-1 divides the optimizer state. ZeRO-3, also called FSDP, divides the gradients and the weights too.
# How much memory does their plan need with each of them?

# %% zero tags=["modelled"]
rows = []
for zero in [0, 1, 3]:
    plan = replace(theirs, recompute="full", zero=zero)
    rows.append((f"zero={zero}", memory_held(large, plan)))
plans_against_memory(rows, A100.memory)

# %% zero-read [markdown]
# ZeRO-1 saves 27 GB on each device, which is more than half of what it held. ZeRO-3 saves 8 GB more.
#
# And what do they cost in time? ZeRO-1 costs nothing. Instead of one all-reduce of the gradients,
# there is a reduce-scatter of the gradients and an all-gather of the weights, and together they move as many bytes.
# FSDP is a different matter, which we leave for the next section.

# %% overlap-text [markdown]
# The third way is the one that the four smallest runs used. The all-reduce of the gradients needn't wait for the end of the backward pass.
# As soon as a block has its gradients, their all-reduce can start, while the device moves on to the preceding block.
# This is called **overlap**: communication hides behind compute. (Our planner assumes that neither slows the other down.)

# %% overlap-picture
from lessons.scale.stages.pictures import exposed_exchange

exposed_exchange()

# %% overlap-read [markdown]
# Two parts of the communication can't hide: the gradients of the block whose backward pass comes last,
# and whatever is still running when the backward pass has ended.
# Such communication is called *exposed*. The step grows by roughly the larger of the two:


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


def step_seconds(network, machine, plan):
    stage = one_stage(network, plan)

    one = compute_seconds(stage, machine, plan)
    one += tensor_seconds(stage, machine, plan)
    one += send_seconds(stage, machine, plan)
    one += recompute_seconds(stage, machine, plan)
    one += tensor_again_seconds(stage, machine, plan)

    many = plan.microbatches
    seconds = pipeline(one, plan.stages, many, plan.chunks)
    seconds += exposed_gradient_seconds(stage, machine, plan)  # new
    return seconds


# %% today-text [markdown]
# Now let the planner choose what to recompute, then whether to use ZeRO-1. Finally, switch on overlap in all plans:

# %% today tags=["modelled"]
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
# Follow the plan as it changes. Selective recomputation makes room, so eight stages are enough instead of sixteen. That shortens the step:
# every stage waits for the last one, which also computes the logits, and with more blocks in a stage this extra work is a smaller share.
#
# ZeRO-1 makes more room. Now four stages are enough, and so are tensor-parallel groups of four, whose all-reduces are cheaper.
# A replica takes 16 devices instead of 64, and there are 96 replicas.
# Overlap leaves the plan as it is, and hides part of its communication.
#
# Here is what each of them saves:

# %% ladder tags=["modelled"]
from lessons.scale.plan_bars import ladder

ladder(list(steps.items()))

# %% ladder-read [markdown]
# From 39.9 s to 18.8 s, and stages saved most. But is that because they came first? Here are the same techniques with stages at the end:

# %% other-order tags=["modelled"]
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
ladder(list(other.items()))

# %% other-order-read [markdown]
# Now ZeRO-1 saves most, stages save only 4.5 s, and recomputation by itself saves nothing.
# What one technique has saved is no longer there for the next.
# By your planner's count, a plan without stages takes 23.8 s with ZeRO-1, less than the 24.8 s published.
# They used stages, but stages weren't the only way.
#
# Would you really get 18.8 s, where they needed 24.8 s? Nobody has measured this plan, either.
# But one thing you can check: does the choice depend on the one number that we fitted?
# Here is the best plan when matrix products reach less of the peak, and when they reach more:

# %% shares tags=["modelled"]
for peak_share in [0.44, 0.66]:
    machine = replace(A100, flops=peak_share * 312e12)
    seconds, plan = ranked(large, machine, overlapping)[0]
    percent = 100 * peak_share
    print(f"{percent:.0f} % of the peak: {seconds:.1f} s", end=", ")
    print("the same plan" if plan == best else "a different plan")

# %% shares-read [markdown]
# The time changes by seconds, but the plan stays the same. (With two closer plans, the choice might flip.)
# So an error in this number does little harm. The next error does much.

# %% fsdp-text [markdown]
# ## Too good to be true
#
# One thing is still missing: the time that FSDP takes. A device gathers the weights of each block twice, for the forward and for the backward pass,
# and a reduce-scatter adds up the gradients. It does so in *every* micro-batch. Each of the three takes half as long as an all-reduce,
# and with overlap they hide behind compute, too:


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


def step_seconds(network, machine, plan):
    stage = one_stage(network, plan)

    one = compute_seconds(stage, machine, plan)
    one += tensor_seconds(stage, machine, plan)
    one += send_seconds(stage, machine, plan)
    one += recompute_seconds(stage, machine, plan)
    one += tensor_again_seconds(stage, machine, plan)
    one += gather_seconds(stage, machine, plan)  # new

    many = plan.microbatches
    seconds = pipeline(one, plan.stages, many, plan.chunks)
    if plan.zero < 3:  # new: FSDP has added up its gradients
        seconds += exposed_gradient_seconds(stage, machine, plan)
    return seconds


# %% fsdp-run-text [markdown]
# What does the planner choose if it may use FSDP?

# %% fsdp-run tags=["modelled"]
with_fsdp = with_each(recomputing, "zero", [0, 1, 3])
with_fsdp = with_each(with_fsdp, "overlap", [True])
seconds, best = ranked(large, A100, with_fsdp)[0]
report(seconds, best)

# %% fsdp-read [markdown]
# 17.6 s, and no pipeline at all! Your planner has dropped the stages. It splits each weight between two devices, and then over 768 replicas.
# If that is true, we could have saved ourselves most of this lesson.
#
# The paper of 2021 measured FSDP, too (it says ZeRO-3), with 175 billion parameters and a batch of 1,536 examples, on three numbers of devices.
# What does your planner say about these runs?

# %% fsdp-published tags=["modelled"]
from lessons.scale.stages.pictures import times_over_devices

measured = [(384, 81.6), (768, 66.8), (1536, 66.8)]
planned = []
for devices, published in measured:
    plan = Plan(
        data=devices,
        tensor=1,
        examples=1536 // devices,
        microbatches=1,
        recompute="full",
        zero=3,
        overlap=True,
    )
    seconds = step_seconds(gpt3, A100, plan)
    planned.append((devices, seconds))
    print(f"{devices:5} devices: published {published} s,", end=" ")
    print(f"predicted {seconds:.1f} s")

times_over_devices({"published": measured, "yours": planned})

# %% fsdp-published-read [markdown]
# On 384 devices, the estimate isn't bad. On 1,536 devices, it is wrong by a factor of almost four!
#
# Your planner expects twice as many devices to take half the time. In truth, the step stopped getting shorter at 768 devices.
# So on 1,536 devices most of the time doesn't go into compute. Where does it go?
# Take the published time, subtract the compute, and compare the rest with our formula for the communication:

# %% fsdp-where tags=["modelled"]
alone = replace(plan, overlap=False)
compute = compute_seconds(gpt3, A100, alone)
compute += recompute_seconds(gpt3, A100, alone)
communication = gather_seconds(gpt3, A100, alone)
print(f"compute                {compute:5.1f} s")
print(f"communication          {communication:5.1f} s")
print(f"left for communication {66.8 - compute:5.1f} s")

# %% fsdp-where-read [markdown]
# If our formula is right about compute, the communication must have taken at least 48.7 s, where the formula says 9 s.
# That is off by more than a factor of five, even if none of it was hidden.
#
# Our formula assumes that a collective over 192 nodes keeps every link busy all the time, that messages don't get in each other's way,
# and that compute and communication don't slow each other down. Across 192 nodes, at least one of these assumptions fails badly, or the program of 2021 had a fault of its own. The paper can't tell us which.
# In the ten runs it did no harm, because there the communication over `data` is a small part of a step.
#
# The same paper ran this network on the same 1,536 devices with tensor parallelism and stages, and needed 20.8 s.
# So don't trust a plan that gathers weights over hundreds of nodes in every micro-batch until you have measured it.
# The usual way out is **hybrid sharding** (HSDP): FSDP inside a node or a few of them, and data-parallel replicas beyond. Our planner leaves it out.

# %% note-fails [markdown]
# Where else does it fail?
#
# The site's page *How good is the model?* compares the explorer, which takes more into account than our planner, with all the published runs that we found.
# Usually it is off by up to a third. But where weights are gathered over more than a thousand devices, it predicts as little as a quarter of the true time.
# And where links between nodes are slow, it can put plans in the wrong order.
# Much that happens on a real machine is in neither of the two: kernels that wait for their launch, congestion, checkpoints, failures.

# %% yours-text [markdown]
# ## 64 H100s and 34 billion parameters
#
# Your turn. You have 64 H100s and want to train 34 billion parameters, with 1,024 examples in a batch. What do you run?

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
# FSDP over all 64 devices, with selective recomputation, and no other cut. These are eight nodes and not two hundred, so the 14.1 s may well be right.
#
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
# If you count on slow links and they are fast, it costs less than 1 s. Such a cost is called the regret of a plan.
# Is there a plan that you would regret even less, whatever the links are like?
#
# **Exercise 2.** Write `regret(plan)`. Work out by how many seconds the plan is slower than the best plan on fast links, which takes `fast_seconds`,
# and by how many it is slower than the best plan on slow links, which takes `slow_seconds`. Return the larger of the two.
# Then find the plan of `fitting` with the least regret, and call it `my_plan`.


# %% exercise-plan
fitting = [plan for _seconds, plan in ranked(mine, H100, choices)]


def regret(plan):
    # solution begin
    on_fast = step_seconds(mine, H100, plan) - fast_seconds
    on_slow = step_seconds(mine, slow, plan) - slow_seconds
    return max(on_fast, on_slow)
    # solution end


# solution begin
my_plan = min(fitting, key=regret)
# solution end

# %%
check("stages-plan", my_plan)

# %% note-plan [markdown]
# What does the plan with the least regret do differently?
#
# It has 4 stages of 3 chunks, 16 replicas, ZeRO-1 and selective recomputation, and no tensor parallelism.
# Like the best plan for slow links, it communicates over `data` only once a step, where FSDP gathers weights in every micro-batch.
# Its stages send each other messages, but nothing is added up in a block.
# Other plans have almost the same regret, and a planner with errors like ours can't tell them apart.
# By the planner's count, this one takes 14.8 s on fast links and 15.7 s on slow ones.

# %% practice [markdown]
# Do practitioners run pipelines or FSDP? A [recipe](https://docs.nvidia.com/nemo/megatron-bridge/nightly/apidocs/bridge/bridge.perf_recipes.llama.h100.llama3.html) by NVIDIA
# lists `tensor` 4 and 4 stages for 70 billion parameters on 64 H100s, while MosaicML and torchtitan have published runs with FSDP alone, of as many parameters on 64 A100s.
# So people run both, and which one is better for you depends on your links: measure these first.

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
# The gradients are complete only during the last of them, so their communication can hide behind one backward pass at most. The other 159 ms are exposed.
#
# What do more examples change? Below are four plans of the explorer. The first is the winner with 512 examples.
# The second has the same mesh and ZeRO-1, but 4,096 examples. The third is the fastest with 4,096 examples and ZeRO-1, and the last one is the winner there:

# %% peak-shares tags=["modelled"]
from lessons.scale.stages.explorer_plans import four_plans

four_plans()

# %% peak-read [markdown]
# Compare the first two. Eight times as many examples keep the devices computing eight times as long, but the gradients are still added up only once a step.
# So communication over `batch` shrinks from 20 % of the step to 2 %, and waiting in the bubble from 6 % to 2 %. That alone brings the devices to 40 % of their peak.
#
# Now all-reduces over `model` take the largest share, 15 %. The third plan has four times as many replicas, so each needs only a quarter of the devices,
# and two devices along `model` communicate far less than eight. ZeRO-1 and selective recomputation make it fit. That brings 44 %.
# With 512 examples that would be a bad plan: each of 256 replicas would have only two examples, so its eight stages would wait for most of the step.
#
# So here is the answer: *with a larger batch, there is more to compute for each time that gradients are added up, and replicas can be smaller.*
# Much more than 45 % isn't possible here, because the explorer assumes that matrix products reach 57 % of the peak.
#
# One last question. The fourth plan is the fastest of all. Would you rent 4,096 devices for it?

# %% note-explorer [markdown]
# Would you?
#
# Not before you have measured it. The fourth plan is ZeRO-3 over 512 replicas, so it gathers weights over many nodes in every micro-batch.
# That is the kind of estimate that was wrong by a factor of almost four.
# The third plan is only 2 % slower by the explorer's count, and it doesn't depend on these gathers.

# %% note-experts [markdown]
# What about experts?
#
# In a *mixture of experts*, a block has many pairs of dense layers, its experts, and each token passes through a few of them.
# **Expert parallelism** puts the experts on different devices. Two all-to-alls in each block carry the tokens to their experts and back:
# in an all-to-all, each device sends a different part to every other device. Neither our planner nor the explorer includes experts.

# %% plain-heading [markdown]
# ## The plain program
#
# [`stages.py`](../plain/stages.py) is the whole planner in one file, with all that this lesson added to it.
# `python stages.py 64 256` ranks the plans for 64 and for 256 devices.

# %% takeaways [markdown]
# ## Takeaways
#
# - A network that must be cut across nodes is cut between its blocks; cut through them only inside a node, and no further than memory demands. For each micro-batch, a stage of $v$ chunks sends $2v$ messages, where tensor parallelism makes four all-reduces in each block.
# - With $p$ stages of $v$ chunks, a step has a bubble as long as $(p - 1) / v$ micro-batches. Make room, with ZeRO-1 or selective recomputation, and you need fewer stages.
# - Trust a planner where it has been compared with measurements. Ours was off by about a quarter at most on ten runs that communicate little over `data`. Where everything depends on gathers over 192 nodes, it was wrong by a factor of almost four.
#
# Puzzles 13 to 16 on the page *Puzzles* set limits for what you learned here: bubbles, ZeRO, the 146 billion parameters of the published run, and 64 H100s whose links are slow.

# %% closing [markdown]
# ## The end of the course
#
# The course began with four training runs ({lesson:whole_game}). One of them had learned from wrong labels, and TensorFlow had reported no error.
# You recognized it because you could compare it with three others. Had it been the only run, you might never have known.
#
# Comparing is what you have done ever since. You compared eight devices with one, an optimizer of your own with one that you could trust, and a restored run with one that never stopped.
# In this lesson there were no devices at all, so you compared a planner with runs that others had published. That told you which of its estimates to believe, and which to measure first.
#
# Now take a model of your own. Train it on one device, and keep the losses. Then split it, and predict what the devices must send each other, and how long a step will take.
# Where your numbers disagree, you will know how to find out why.
#
# Have you inherited a program with Estimators? {Lesson:estimators} shows how to get off them and keep the numbers.

# %% score
score("stages")

# %% [markdown]
# # What does my planner not know?
#
# Your planner's best plan takes 39.9 s for a step: 145.6 billion parameters, 1,536 A100s.
# Those who really ran such steps needed 24.8 s.
#
# Training on 300 billion tokens would take you 29 days; it would take them 18. You would pay for 1,536 devices for eleven days more.
# You have the same network, the same devices and the same links. So they must know something that your planner doesn't.
#
# What is it? We'll find the answers one by one, and each adds a few lines to the planner.
# Before long it will predict a step that is *faster* than the published one.
# Then you'll have to ask: *how much of this should I believe?*
#
# **After this lesson you can**
#
# - say what pipeline stages save and what their bubbles cost, and read both off a schedule;
# - say what full recomputation costs in seconds, and what it saves in bytes;
# - check a planner against published training runs, and say how far to trust it.
#
# **Time:** 40 minutes.
# **You need to know:** the planner of {lesson:how_long}, and recomputation from {lesson:zero_and_fsdp}.

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
# ## A cut that needs no all-reduce
#
# The next cell is the planner of {lesson:how_long}. It is folded; just run it.

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
# Only `Plan` has really changed. It has a field for everything that this lesson adds, and comments say which section first uses it.
# Until then the defaults hold: one stage, one chunk, nothing recomputed.
# The explorer calls the three mesh dimensions `batch`, `model` and `stage`. Here, their sizes are `data`, `tensor` and `stages`.


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


# %% before-text [markdown]
# Where do the 39.9 s go? Here is your planner's best plan once more, part by part:

# %% before tags=["modelled"]
large = Network(blocks=80, width=12288, heads=96)
first = Plan(data=32, tensor=48, examples=1, microbatches=72)

computing = 72 * compute_seconds(large, A100, first)
activations = 72 * tensor_seconds(large, A100, first)
gradients = gradient_seconds(large, A100, first)
print(f"compute                 {computing:5.1f} s")
print(f"all-reduces over tensor {activations:5.1f} s")
print(f"all-reduce over data    {gradients:5.1f} s")

# %% stages-text [markdown]
# More than half of the step goes into all-reduces over `tensor`.
# One copy of the network is spread over 48 devices, or six nodes, so every one of these all-reduces leaves its node.
#
# Tensor parallelism cuts *through* the blocks, so the devices have to add up in every block.
# What if you cut *between* the blocks? Here are both cuts, for four blocks and four devices:

# %% two-cuts
from lessons.scale.stages.pictures import two_cuts

two_cuts()

# %% two-cuts-read [markdown]
# On the right each block sits on one device. No sum is split over devices, so no all-reduce is needed.
# Each device takes a micro-batch through its own blocks and sends the activations on to the next device.
# In the backward pass, the gradients of these activations travel back the same way, with as many bytes.
# This is **pipeline parallelism**, and each part of the network is a **stage**. It has nothing to do with the stages of ZeRO.
#
# Let's give every stage a whole node. The 80 blocks make eight stages of ten,
# and inside its node each stage is split by tensor parallelism, as before.
# A replica then fills eight nodes instead of six. So there are 24 replicas instead of 32, with 96 micro-batches each.
# What does that save? A stage is just a network with fewer blocks, so the planner needs no change to tell you:

# %% stage-run tags=["modelled"]
ten_blocks = Network(blocks=10, width=12288, heads=96)
in_a_node = Plan(data=24, tensor=8, examples=1, microbatches=96)

before = tensor_seconds(large, A100, first)
after = tensor_seconds(ten_blocks, A100, in_a_node)
# All eight hold the same activations, so each sends an eighth.
# The next node gathers them again: we don't count that.
num_bytes = 2 * SEQUENCE * large.width / 8
message = BETWEEN.latency + num_bytes / BETWEEN.bandwidth

print("A micro-batch of one example")
print(f"all-reduces, 48 devices: {1000 * before:5.1f} ms")
print(f"all-reduces of a stage:  {1000 * after:5.1f} ms")
print(f"its two messages:        {1000 * 2 * message:5.1f} ms")

# %% stage-run-read [markdown]
# Almost nineteen times as fast! A stage has an eighth of the blocks, so it makes an eighth of the all-reduces.
# And since none of them leaves the node, each takes less than half as long.
# The two messages, one forward and one backward, hardly count.
#
# That is one stage, and a micro-batch has to pass through eight. But while one stage has it, the other seven work on others: eight micro-batches are under way at once.
# So in a step, a stage makes its all-reduces for 96 micro-batches, and that takes 1.6 s. Before, those for 72 micro-batches took 22.4 s. There must be a catch.

# %% schedule-text [markdown]
# ## Who works when?
#
# A stage can't begin before the stage in front of it has finished. Here are four stages with four micro-batches:

# %% schedule
from lessons.scale.stages.schedules import schedule

schedule(stages=4, microbatches=4)

# %% schedule-read [markdown]
# Look at the last stage, the lowest lane. It can't start until micro-batch 1 has passed through the three stages before it.
# The first stage begins at once, but then it has to wait until gradients come back to it.
#
# Now count. Each micro-batch keeps a stage busy for three time slots, one forward, two backward.
# So with four micro-batches a stage works for twelve slots. In the other nine it is idle.
# This idle time is the **bubble** of the pipeline.
# Nine slots are three micro-batches: one for each of the other stages.

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
# This schedule is called **interleaved**, and its chunks are also called *virtual stages*. A ring's chunks are something else.

# %% interleaved
schedule(stages=4, microbatches=4, chunks=2)

# %% interleaved-read [markdown]
# Count the idle slots. There are nine again! But a slot is now the forward pass of *one* chunk, so it is half as long,
# and the bubble has shrunk to half its size. In return, there are twice as many messages.
# And the number of micro-batches must be a multiple of the number of stages. They go in groups of that size: a group passes through the first chunk of every stage, and then through the second.
#
# **Exercise.** Write `pipeline_seconds(one, stages, microbatches, chunks)`.
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
# Where do the devices of a plan sit? In a node, `tensor` comes first. If it is 4, say, the node's other four devices hold the same stage of another replica. We put the stages of one replica into different nodes. So gradients may stay inside a node, but messages between stages never do.
#
# The last stage is the slowest, because it also computes the logits. Since all others wait for it, we count the logits in every stage.
# The first stage also holds the embedding. We count it in every stage, since the fullest device decides whether a plan fits.
#
# The time of a step has two parts: what every micro-batch takes, and what comes only once a step.
# Each part gets its own function, so that we can add to it later:


# %% step
from course_lib import yours_or_ours

pipeline = yours_or_ours("stages-pipeline", pipeline_seconds)


def microbatch_seconds(stage, machine, plan):
    seconds = compute_seconds(stage, machine, plan)
    seconds += tensor_seconds(stage, machine, plan)
    seconds += send_seconds(stage, machine, plan)
    return seconds


def once_seconds(stage, machine, plan):
    return gradient_seconds(stage, machine, plan)


def step_seconds(network, machine, plan):
    stage = one_stage(network, plan)
    one = microbatch_seconds(stage, machine, plan)
    many = plan.microbatches
    seconds = pipeline(one, plan.stages, many, plan.chunks)
    return seconds + once_seconds(stage, machine, plan)


# %% flight-text [markdown]
# Before your planner can choose, it has to know the memory. A stage has to keep the activations of a micro-batch until the micro-batch comes back in the backward pass.
# Until then, the micro-batch is *in flight*. Here is a step of eight micro-batches. The top row counts those in flight at stage 0:

# %% flight-picture
schedule(stages=4, microbatches=8, count_in_flight=True)

# %% flight-read [markdown]
# There are eight micro-batches, but never more than four in flight!
# After its first backward pass, stage 0 alternates: the next micro-batch starts only when one has come back.
# That alternation is the point of the schedule, and gives it its name: **1F1B**, one forward, one backward.
# With a hundred micro-batches there would still be four in flight, as many as there are stages.
#
# Interleaving adds a few. Without chunks, stage 0 makes $p$ forward passes before its first backward pass.
# With $v$ chunks it makes $pv + p - 1$, if there are enough micro-batches.
# But each covers only one chunk, so it leaves $1/v$ of a micro-batch's activations. Together they leave as much as $p + (p - 1)/v$ micro-batches:


# %% flight
def in_flight(plan):
    waiting = plan.stages
    if plan.chunks > 1:
        waiting += (plan.stages - 1) / plan.chunks
    return min(waiting, plan.microbatches)


# %% plans-text [markdown]
# The next two cells are folded. The first works out the memory of a plan, from the micro-batches in flight and the 16 bytes of each parameter.
# It already includes a case for the next section, where we'll come back to it.
# The second lists plans, with every number of stages and chunks that divides the blocks. It ranks those that fit, and prints a plan.


# %% memory tags=["known"]
def state_held(network, plan):
    parameters = parameters_held(network, plan)
    variables, gradients = 2 * parameters, 2 * parameters
    return {
        "variables": variables,
        "gradients": gradients,
        "optimizer": 12 * parameters,
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
plans = all_plans(large, 1536, 2304)
seconds, best = ranked(large, A100, plans)[0]
report(seconds, best)

plans = with_chunks(large, plans)
seconds, best = ranked(large, A100, plans)[0]
report(seconds, best)

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
# The paper tells us `tensor` 8 and 8 stages. Its authors' [scripts](https://github.com/NVIDIA/Megatron-LM/blob/79a3bb6bf2c85b748c46749dd0695e23310d4e16/examples/sc21/run_table_1.sh) add 2 chunks and a micro-batch size of 2.
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
# Your planner predicts 20.9 s for their plan, hardly more than the 20.7 s of its own choice. But by its count, their plan doesn't fit! The activations alone would need more than one and a half times the memory of a device.
#
# So they can't have kept all activations, and indeed they didn't. They recomputed every block, as you did in {lesson:zero_and_fsdp}:
# a device keeps only the input of a block, and computes the block a second time when the backward pass gets there.
# This is called full recomputation, and also activation checkpointing or gradient checkpointing.

# %% predict-recompute [markdown]
# In seconds, your planner's estimate for a step of the published plan is 20.9 if every device keeps all of its activations. Most of that is compute,
# and the backward pass has twice the compute of the forward pass.
# Now each block is recomputed in the backward pass, together with the all-reduces of its forward pass.
# About how many seconds is its estimate then?
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
# Now put recomputation into the planner. Each micro-batch goes through the whole forward pass of its blocks once more, and that includes half of its all-reduces.
# So there are two new parts. `step_seconds` needs no change: it calls `microbatch_seconds`, which the next cell replaces.


# %% recompute
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


def microbatch_seconds(stage, machine, plan):
    seconds = compute_seconds(stage, machine, plan)
    seconds += tensor_seconds(stage, machine, plan)
    seconds += send_seconds(stage, machine, plan)
    seconds += recompute_seconds(stage, machine, plan)  # new
    seconds += tensor_again_seconds(stage, machine, plan)  # new
    return seconds


# %% recompute-run-text [markdown]
# It also saves memory, because each block keeps only its input, 2 bytes for each feature of a token. In the folded cell, this is the case
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
# It also costs the eight days that {lesson:how_long} opened with. There, the estimate for GPT-3 was 34 days on 1,024 A100s.
# With full recomputation, a step has four parts of compute, and one of them is a repeat. A quarter of 34 days is eight and a half.
#
# Is the estimate better now? It was 16 % too short; now it is 12 % too long. That alone would prove little.
# What counts is that your planner now has a plan that really fits, and that people really ran.
#
# By your planner's count they needn't have recomputed: its own plan of 20.7 s does without, with 16 stages of 5 chunks.
# But nobody has measured that plan. All that we can check is theirs.

# %% runs-text [markdown]
# ## How far can you trust it?
#
# The paper has ten such runs, from 1.7 to 1,008 billion parameters, all with full recomputation.
# One of them, with 18.4 billion parameters, gave the planner its one fitted number: 52 % of an A100's peak.
# The other nine are real predictions.
#
# In the four smallest runs, which have a single stage, the authors' scripts add up gradients *during* the backward pass.
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
# If the error depends only on the network, it does little harm: for *one* network, all estimates are too long, or all too short, and the ranking hardly suffers. Does it? Ten runs of ten networks can't tell. The site's page *How good is the model?* has four measured plans of nearly the same network,
# and the explorer takes the slowest for the fastest.
# So let the planner say which few plans are worth a measurement, and let the measurement say which one is best.

# %% answer [markdown]
# ## So what didn't it know?
#
# Two things: the people of 2021 ran a pipeline, and they recomputed every block. With both, your planner comes within 12 % of their step.
#
# But would you do the same today? By your planner's count, seven of its 28 seconds pay for memory: in them, the devices compute what they have computed before.
# Must memory cost so much time? That is the question of {lesson:memory_and_time}. And if your planner then offers you a plan of less than 18 s, would you rent 1,536 devices for it? That is the question of {lesson:which_plan}.

# %% plain-heading [markdown]
# ## The plain program
#
# [`stages.py`](../plain/stages.py) is the planner of this lesson in one file. `python stages.py 1024 1536` ranks the plans of the large network for 1,024 and for 1,536 devices.

# %% takeaways [markdown]
# ## Takeaways
#
# - If a network must span several nodes, cut it between blocks, and through blocks inside a node. That is usually the faster way: for each micro-batch, a stage of $v$ chunks sends $2v$ messages, where tensor parallelism makes four all-reduces in each block.
# - With $p$ stages of $v$ chunks, a step has a bubble as long as $(p - 1) / v$ micro-batches. However many micro-batches there are, 1F1B without chunks keeps at most $p$ of them in flight.
# - Full recomputation pays for memory with a third more compute. Before our planner knew that, its estimate was too good to be true. Since then it has been off by at most about a quarter on the paper's nine other runs.
#
# Puzzles 13 and 15 on the page *Puzzles* set limits for what you learned here: bubbles, and the 146 billion parameters of the published run.

# %% score
score("stages")

# %% [markdown]
# # Which plan would you run today?
#
# In 2021, 1,536 A100s took 24.8 s for a training step of a network with 145.6 billion parameters and a batch of 2,304 examples.
# Your planner offers you a plan that takes 17.6 s on the same devices. Training on 300 billion tokens would then take 13 days instead of 18.
#
# Would you rent 1,536 devices on the strength of that? We know of nobody who has measured this plan.
# And if your planner is wrong, you'll find out with 1,536 devices running, and every one of them on your bill.
#
# So before you rent, check the planner against the closest thing to your plan that *was* measured. Then use what you learned: on 4,096 H100s, the open question of {lesson:whole_game}, and on 64, which you might really rent.
# *Which plan would you run today, and what would you measure first?*
#
# **After this lesson you can**
#
# - judge which of a planner's estimates to trust;
# - say why a larger batch uses many devices better;
# - choose a plan that you'll hardly regret, whether your links are fast or slow.
#
# **Time:** 35 minutes.
# **You need to know:** the techniques of {lesson:memory_and_time}.

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
# ## Has anybody measured such a plan?
#
# The next cell is the planner of {lesson:memory_and_time}, with all that it learned there. It is folded; just run it.

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
    if plan.recompute == "selective":
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


def parameters_held(network, plan):
    in_blocks = 12 * network.width**2 * network.blocks
    embedding = network.width * VOCABULARY
    return (in_blocks + embedding) / plan.tensor


def gradient_seconds(network, machine, plan):
    num_bytes = 2 * parameters_held(network, plan)
    return over_data(machine, plan, num_bytes)


def exposed_seconds(communication, blocks, hidden_behind):
    the_last = communication / blocks
    beyond = communication - hidden_behind
    return max(the_last, beyond)


def exposed_gradient_seconds(network, machine, plan):
    communication = gradient_seconds(network, machine, plan)
    if not plan.overlap:
        return communication
    # Gradients are complete only in the last micro-batch
    backward = 2 / 3 * compute_seconds(network, machine, plan)
    backward += recompute_seconds(network, machine, plan)
    return exposed_seconds(communication, network.blocks, backward)


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
    seconds += gather_seconds(stage, machine, plan)
    return seconds


def once_seconds(stage, machine, plan):
    if plan.zero == 3:  # FSDP has added up its gradients
        return 0
    return exposed_gradient_seconds(stage, machine, plan)


def step_seconds(network, machine, plan):
    stage = one_stage(network, plan)
    one = microbatch_seconds(stage, machine, plan)
    many = plan.microbatches
    seconds = pipeline(one, plan.stages, many, plan.chunks)
    return seconds + once_seconds(stage, machine, plan)


def state_held(network, plan):
    parameters = parameters_held(network, plan)
    variables, gradients = 2 * parameters, 2 * parameters
    optimizer = 12 * parameters
    if plan.zero >= 1:
        optimizer /= plan.data
    if plan.zero == 3:
        gradients /= plan.data
        # Two blocks are whole: one that computes, and the next
        block_bytes = 2 * 12 * network.width**2 / plan.tensor
        variables = variables / plan.data + 2 * block_bytes
    return {
        "variables": variables,
        "gradients": gradients,
        "optimizer": optimizer,
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


# %% offer-text [markdown]
# Here is the offer once more:

# %% offer tags=["modelled"]
large = Network(blocks=80, width=12288, heads=96)
offer = Plan(
    data=768,
    tensor=2,
    examples=1,
    microbatches=3,
    recompute="selective",
    zero=3,
    overlap=True,
)
print(f"{step_seconds(large, A100, offer):.1f} s")

# %% offer-read [markdown]
# Each weight is split between two devices, and then by FSDP over 768 replicas. In every micro-batch, each block's weights are gathered from all 192 nodes. The planner believes that this hides behind compute. Does it?
#
# The paper with the 24.8 s also measured FSDP, which it calls ZeRO-3: 175 billion parameters and a batch of 1,536 examples, on 384, 768 and 1,536 devices.
# That is not your plan, but we know of no published run that comes closer. So let's predict these runs first.

# %% predict-fsdp [markdown]
# Training steps of a network of 175 billion parameters were measured with FSDP on several numbers of devices, always with a batch of 1,536. In seconds, a step took 81.6 on 384 devices, and 66.8 on 768. A planner expects 72.5 on 384 devices, 36.3 on 768, and 18.2 on 1,536. How many seconds did a step take on 1,536 devices?
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
# Here are the published times beside those of your planner. In these runs, each device took its whole share of the batch at once, and recomputed every block:

# %% fsdp-published tags=["modelled"]
from lessons.scale.which_plan.pictures import times_over_devices

gpt3 = Network(blocks=96, width=12288, heads=96)


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
# On 384 devices your planner is off by 11 %. On 1,536 it is wrong by a factor of almost four!
# And these devices can do better: with tensor parallelism and stages, the same paper measured 20.8 s for this network.
#
# Where did the time go? Not into compute, since that shrinks as you add devices. So subtract the compute from the published times, and compare what is left with the planner's formula for communication:

# %% fsdp-where tags=["modelled"]
print("devices    compute    formula    left for communication")
for devices, published in measured.items():
    # Without overlap, `gather_seconds` counts all communication
    plan = replace(fsdp_on(devices), overlap=False)
    compute = compute_seconds(gpt3, A100, plan)
    compute += recompute_seconds(gpt3, A100, plan)
    formula = gather_seconds(gpt3, A100, plan)
    left = published - compute
    times = f"{compute:8.1f} s {formula:8.1f} s {left:8.1f} s"
    print(f"{devices:7} {times}")

# %% fsdp-where-read [markdown]
# The formula says 9 s each time, since a device gathers the same weights, however many devices there are. For 384 devices that is about right, if nothing was hidden. But 768 devices took 30.6 s, more than three times that, and 1,536 took 48.7 s, more than five times. And whatever was hidden comes on top.
#
# So it looks as if gathers over many nodes are far slower than the formula says. You have seen that before: in {lesson:how_long}, an all-reduce over 64 nodes took almost six times as long as the formula. Not always, though: for a later FSDP run on 64 nodes of H100s, the explorer's estimate was right.
#
# The offer gathers over 192 nodes, too, and its communication takes just as long as the compute that hides it. So it has no time to spare.
# Compare the best plan without FSDP, at 18.8 s, whose replicas exchange gradients and weights only once a step. What if the links between nodes are slower than the planner believes?

# %% slower tags=["modelled"]
with_stages = Plan(
    data=96,
    tensor=4,
    examples=1,
    microbatches=24,
    stages=4,
    chunks=10,
    recompute="selective",
    zero=1,
    overlap=True,
)
print("slower links     FSDP    stages")
for factor in [1, 1.2, 2, 5]:
    between = Link(25e9 / factor, 14e-6 * factor)
    machine = replace(A100, between=between)
    fsdp_seconds = step_seconds(large, machine, offer)
    stages_seconds = step_seconds(large, machine, with_stages)
    times = f"{fsdp_seconds:8.1f} s {stages_seconds:7.1f} s"
    print(f"{factor:3} times {times}")

# %% slower-read [markdown]
# If the links are only a fifth slower than the planner believes, the offer has already lost. With the factor of five that we have just found, a step takes 70 s. The plan with stages takes 23 s.
#
# So don't rent 1,536 devices for FSDP before you have measured gathers over many nodes, with `nccl-tests` ({lesson:all_reduce}).
# Stages with tensor parallelism *have* been measured on that many: that was the 20.8 s above.

# %% note-hsdp [markdown]
# Is there nothing between FSDP over all devices and no FSDP?
#
# There is **hybrid sharding** (HSDP): FSDP inside one node or a few, and data-parallel replicas beyond that. Its gathers stay on fast links. Your planner leaves it out.

# %% note-fails [markdown]
# What else can go wrong?
#
# - *Time.* The site's page *How good is the model?* compares the explorer with all the published runs that we found. Usually it is off by up to a third. But where links between nodes are slow, it can put plans in the wrong order.
# - *Memory.* A plan of 79 GB may not fit into 80 GB. Libraries need memory too, for example for the buffers of collectives, and freed memory may lie in pieces too small to be used again. A run on a few nodes tells you how much that takes.
# - *What is left out.* Neither your planner nor the explorer models kernels waiting to be launched, congestion, checkpoints, failures, or networks with experts (in the glossary under *Expert parallelism*). And your planner counts the latency of gathers once for each micro-batch, not for each block, so over many nodes its times for FSDP are too short.

# %% explorer-text [markdown]
# ## Back to 4,096 devices
#
# {Lesson:whole_game} left you with a question. With a batch of 512 examples, the best plan for 4,096 H100s reaches only 30 % of their peak. With 4,096, another plan wins, with 45 %. Why?
#
# Here is the explorer once more, with the largest network and every technique allowed:

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
# Read the first plan. A step takes 778 ms, and a device computes for only 451 ms of it.
# Each of the 64 replicas works through eight micro-batches of one example. Only the last backward pass can hide the communication of the gradients ({lesson:memory_and_time}), and 159 ms over `batch` remain exposed.
#
# Now give the devices more examples. In the table below, plan 1 is the one you have just read. The others have 4,096 examples: plan 2 with the same mesh and ZeRO-1, plan 3 with half as many devices along `model`, and plan 4, the fastest of all:

# %% peak-shares tags=["modelled"]
from lessons.scale.which_plan.explorer_plans import four_plans

four_plans()

# %% peak-read [markdown]
# Compare plans 1 and 2. With eight times as many examples, the devices compute for eight times as long. But they still add up gradients only once a step, and the last backward pass now has two examples, so it hides more.
# So communication over `batch` shrinks from 20 % of the step to 2 %, and waiting in the bubble from 6 % to 2 %. The devices reach 40 % of their peak.
#
# What remains is mostly all-reduces over `model`: 15 % of the step. Plan 3 has four devices along `model` instead of eight, and half as many examples in each replica. So this share falls to 7 %.
# A replica needs only half as many devices, and with ZeRO-1 it still fits. The devices reach 43 %.
#
# With 512 examples, plan 3 would be bad. Each of its 128 replicas would get only four, and four micro-batches can't be interleaved over eight stages ({lesson:stages}). So the stages would wait for most of the step.
#
# So a larger batch helps twice: *it gives the devices more to compute between two exchanges of gradients, and it lets you use smaller replicas.*
#
# Plan 4 is 5 % faster still. But you know its kind: with ZeRO-3, 512 replicas gather weights over many nodes in every micro-batch.
# Like your planner, the explorer gives these gathers the full bandwidth of the links, however many nodes take part.
# So here, too, we would run plan 3, and plan 4 only once its gathers have been measured.

# %% note-more [markdown]
# Could it be more than 45 %?
#
# Hardly by the explorer's count: its matrix products reach only 57 % of the peak, and some of the computing time is memory traffic, with no products. Published runs on H100s have reached 50 %.

# %% yours-text [markdown]
# ## 64 H100s and 34 billion parameters
#
# Few of us rent thousands of devices. So suppose that you have 64 H100s, and want to train 34 billion parameters with 1,024 examples in a batch.
# What does your planner choose?

# %% yours tags=["modelled"]
# The links are those of the explorer, the share of the peak is
# still that of the A100s
H100 = Machine(
    flops=PEAK_SHARE * 989e12,
    memory=80e9,
    inside=Link(371e9, 3.4e-6),
    between=Link(50e9, 14e-6),
)
mine = Network(blocks=48, width=7680, heads=64)

choices = with_chunks(mine, all_plans(mine, 64, 1024))
ways = ["nothing", "selective", "full"]
choices = with_each(choices, "recompute", ways)
choices = with_each(choices, "zero", [0, 1, 3])
choices = with_each(choices, "overlap", [True])

fast_seconds, fast_best = ranked(mine, H100, choices)[0]
show(fast_best)
print(f"{fast_seconds:.1f} s")

# %% yours-read [markdown]
# FSDP again, over all 64 devices, with selective recomputation: no tensor parallelism, no stages.
#
# Can you believe the 14.1 s? This time there are only eight nodes. Two published FSDP runs on eight nodes of A100s were even faster than the explorer says (page *How good is the model?*).
# But each of their gathers could hide behind 8,192 tokens of compute or more. Yours has 4,096.
#
# And the planner assumes that your links between nodes carry 50 GB/s for each device. If other jobs use the network, or several devices share an adapter, they may carry only a quarter of that.
# Does FSDP remain the best plan then? And how much does the answer depend on the one number that we fitted, 52 % of the peak?

# %% border tags=["modelled"]
print("links       48 %      52 %      60 %  of the peak")
for gigabytes in [50, 20, 15, 12.5, 10]:
    line = f"{gigabytes:4} GB/s"
    for share in [0.48, 0.52, 0.6]:
        machine = replace(
            H100,
            flops=share * 989e12,
            between=Link(gigabytes * 1e9, 14e-6),
        )
        _seconds, plan = ranked(mine, machine, choices)[0]
        line += "      FSDP" if plan.zero == 3 else "    stages"
    print(line)

# %% border-read [markdown]
# With 20 GB/s and more, FSDP is the best plan. With 10 GB/s, a plan with stages and ZeRO-1 is. In between, it depends on how fast your devices really compute: the faster they do, the less can hide.
#
# So measure your links before you choose. But what if you must choose before you can measure?
# Suppose that your links turn out to carry either 50 GB/s or 12.5 GB/s. Here is the best plan for the slow ones:

# %% slow tags=["modelled"]
slow = replace(H100, between=Link(12.5e9, 14e-6))

slow_seconds, slow_best = ranked(mine, slow, choices)[0]
show(slow_best)
print(f"{slow_seconds:.1f} s")

# %% slow-read [markdown]
# A very different plan: two stages, tensor parallelism of two, and ZeRO-1. What does a wrong guess cost? Here are both plans on both links:


# %% worlds tags=["modelled"]
def on_both(name, plan):
    on_fast = step_seconds(mine, H100, plan)
    on_slow = step_seconds(mine, slow, plan)
    print(f"{name} {on_fast:13.1f} s {on_slow:13.1f} s")


print("                     on fast links   on slow links")
on_both("best on fast links", fast_best)
on_both("best on slow links", slow_best)

# %% worlds-read [markdown]
# Suppose that you count on fast links, and they are slow. A step then takes 18.3 s, where the right plan takes 15.5 s: your guess costs you almost 3 s.
# If you count on slow links and get fast ones, it costs less than 1 s.
# A plan's *regret* is how much longer it takes on some links than the best one.
#
# In the next picture, each point is a plan that fits: with FSDP (`zero 3`), with ZeRO-1 (`zero 1`) or with neither. Further right means slower on fast links; higher means slower on slow links.
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
# If you don't know which links you'll get, look at the larger of a plan's two regrets, its *largest regret*. The cautious choice is the plan where it is smallest. This rule is called *minimax regret*.
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
regrets = []
for on_fast, plan in ranked(mine, H100, choices):
    on_slow = step_seconds(mine, slow, plan)
    regret = max(on_fast - fast_seconds, on_slow - slow_seconds)
    regrets.append((regret, plan))
regrets.sort(key=lambda pair: pair[0])

print("regret  data  tensor  stages  chunks  examples  zero  recompute")
for regret, plan in regrets:
    if regret < 1:
        sizes = f"{plan.data:5} {plan.tensor:7} {plan.stages:7}"
        sizes += f" {plan.chunks:7} {plan.examples:9} {plan.zero:5}"
        print(f"{regret:.2f} s {sizes}  {plan.recompute}")

# %% close-read [markdown]
# These eleven lie within 0.2 s, about a hundredth of a step, and no planner can tell them apart. So look at what they have in common.
# All have 16 replicas of four devices, which are four stages, or two stages with tensor parallelism of two. All use ZeRO-1 and selective recomputation.
#
# None uses FSDP. The best plan on fast links, with FSDP over all 64 devices, might cost you almost 3 s. But perhaps another plan with FSDP does better?

# %% close-fsdp tags=["modelled"]
with_fsdp = [pair for pair in regrets if pair[1].zero == 3]
regret, cautious_fsdp = with_fsdp[0]
show(cautious_fsdp)
print(f"largest regret: {regret:.2f} s")

# %% answer [markdown]
# Yes: with tensor parallelism of two, the largest regret is 1.18 s. The smallest is 0.78 s, and your planner can't tell these two apart, either.
# Only a measurement can tell whether one of the eleven beats FSDP on *your* links.
#
# ## Does it really fit?
#
# Before we answer, one more doubt. The planner counts 2 bytes for each gradient. But many libraries add up gradients in float32, which takes 4 (and more time: ignored here). Which of the eleven plans still fit then?


# %% float32 tags=["modelled"]
def with_float32(network, plan):
    held = memory_held(network, plan)
    return sum(held.values()) + held["gradients"]


print("tensor  stages  chunks  examples    memory")
for regret, plan in regrets:
    if regret < 1:
        gigabytes = with_float32(mine, plan) / 1e9
        sizes = f"{plan.tensor:6} {plan.stages:7} {plan.chunks:7}"
        print(f"{sizes} {plan.examples:9} {gigabytes:6.1f} GB")

print()
for plan in [cautious_fsdp, fast_best]:
    gigabytes = with_float32(mine, plan) / 1e9
    print(f"FSDP over {plan.data} replicas: {gigabytes:.1f} GB")

# %% float32-read [markdown]
# Only five of them fit into 80 GB, all with two stages, tensor parallelism of two and one example at a time. We choose among these: the one without chunks leaves the most room.
#
# The cautious plan with FSDP doesn't fit, either. FSDP over all 64 devices does, but that may cost you almost 3 s. So stages win. Does the plan of 18.8 s for 1,536 A100s still fit?

# %% float32-large tags=["modelled"]
print(f"{with_float32(large, with_stages) / 1e9:.1f} GB")

large_plans = with_chunks(large, all_plans(large, 1536, 2304))
large_plans = with_each(large_plans, "recompute", ways)
large_plans = with_each(large_plans, "zero", [1])
large_plans = with_each(large_plans, "overlap", [True])
for seconds, plan in ranked(large, A100, large_plans):
    if with_float32(large, plan) <= A100.memory:
        show(plan)
        print(f"{seconds:.1f} s")
        break

# %% answers [markdown]
# No, it needs 91.6 GB. The best ZeRO-1 plan that fits has eight stages, and takes 0.4 s longer. That makes 14 days for the 300 billion tokens, where the offer promised 13. (Plan 3 for the 4,096 H100s fits: float32 gradients add 10 GB to the 55 GB of the table.)
#
# So here are our answers:
#
# | you have | we would run | and first measure |
# | --- | --- | --- |
# | 64 H100s | 16 replicas of two stages and tensor parallelism of two, with ZeRO-1 and selective recomputation | gathers over the eight nodes: at 20 GB/s or more for each device, time a few steps of FSDP, too. And the memory: there is little to spare |
# | 1,536 A100s | eight stages and tensor parallelism of four, with ZeRO-1 and selective recomputation | a few steps on a few nodes |
# | 4,096 H100s | plan 3: eight stages and tensor parallelism of four, with ZeRO-1 | gathers over hundreds of nodes, before you think of plan 4 |
#
# All three have stages and ZeRO-1. So {lesson:stages} wasn't for nothing.

# %% note-practice [markdown]
# Do practitioners run pipelines or FSDP?
#
# They run both. A [recipe](https://docs.nvidia.com/nemo/megatron-bridge/nightly/apidocs/bridge/bridge.perf_recipes.llama.h100.llama3.html) by NVIDIA
# for 70 billion parameters on 64 H100s lists `tensor` 4, 4 stages and context parallelism of 2 (it splits the sequence). MosaicML and torchtitan have measured networks of that size on 64 A100s with FSDP alone.
# Which one is better for you depends on your links: measure these first.

# %% plain-heading [markdown]
# ## The plain program
#
# [`which_plan.py`](../plain/which_plan.py) is the whole planner in one file.
# `python which_plan.py 64 256` ranks the plans for 64 and for 256 devices.

# %% takeaways [markdown]
# ## Takeaways
#
# - Trust a planner only where measurements have agreed with it. Ours was fitted to one run of a paper, and at most about a quarter off on the rest. For FSDP on 1,536 devices, it was wrong by a factor of almost four.
# - A larger batch uses many devices better: they compute longer between two exchanges of gradients, and replicas can be smaller.
# - Don't ask for the fastest plan, but for one whose largest regret is small. When two plans differ by less than the planner's error, look at what the good ones have in common, and measure.
#
# Puzzle 16 on the page *Puzzles* is about 64 H100s whose links are slow. And if you have inherited a program with Estimators, {lesson:estimators} shows how to get off them and keep the numbers.

# %% closing [markdown]
# ## The end of the course
#
# The course began with four training runs ({lesson:whole_game}). One of them had learned from wrong labels, and TensorFlow had reported no error.
# You recognized it because you could compare it with three others. If it had been the only run, you might not have known.
#
# Comparing is what you have done ever since. You compared eight devices with one, your own optimizer with one that you could trust, and a restored run with one that never stopped.
# In this lesson there were no devices, so you compared a planner with published runs. That told you which of its estimates to believe, and which to measure first.
#
# Now take a model of your own. Train it on one device, and keep the losses. Then split it, and predict what the devices must send each other, and how long a step will take.
# Where your numbers disagree, you will know how to find out why.

# %% score
score("which_plan")

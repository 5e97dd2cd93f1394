"""All-reduces as readers may write them, right and wrong, each for one device: `attempt(mine, device)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from lessons.lesson_02_communication.messages import Array, Device


def naive(mine: Array, device: Device) -> Array:
    """Sends all to everyone."""
    for other in _others(device):
        device.send(other, mine)
    return mine + sum(device.receive(other) for other in _others(device))


def ring(mine: Array, device: Device) -> Array:
    """Lets sums of chunks go round once, and the finished ones once more."""
    return _round_again(_added(mine, device), device, device.id)


def over_device_0(mine: Array, device: Device) -> Array:
    """Lets device 0 add and send the sum back."""
    if device.id:
        device.send(0, mine)
        return device.receive(0)
    total = mine + sum(device.receive(other) for other in _others(device))
    for other in _others(device):
        device.send(other, total)
    return total


def ring_from_own_chunk(mine: Array, device: Device) -> Array:
    """Begins with the chunk of the device's own number, so that it ends with that of the next one."""
    return _round_again(_added(mine, device, first=device.id), device, device.id + 1)


def ring_in_place(mine: Array, device: Device) -> Array:
    """Writes into the array of the device."""
    chunks = np.array_split(mine, device.count)  # views
    for step in range(2 * (device.count - 1)):
        sent, kept = (chunks[(device.id - step - behind) % device.count] for behind in (1, 2))
        device.send(device.next, sent)
        adds = step < device.count - 1
        kept[:] = device.receive(device.previous) + (kept if adds else 0)
    return mine.copy()


def only_device_0(mine: Array, device: Device) -> Array:
    """Lets device 0 alone have the sum."""
    if device.id:
        device.send(0, mine)
        return mine
    return mine + sum(device.receive(other) for other in _others(device))


def neighbours_only(mine: Array, device: Device) -> Array:
    """Adds what the previous device has."""
    device.send(device.next, mine)
    return mine + device.receive(device.previous)


def own_twice(mine: Array, device: Device) -> Array:
    """Counts the device's own values twice."""
    return naive(mine, device) + mine


def mean(mine: Array, device: Device) -> Array:
    """Divides the sum."""
    return naive(mine, device) / device.count


def without_own(mine: Array, device: Device) -> Array:
    """Forgets the device's own values."""
    return naive(mine, device) - mine


def to_itself(mine: Array, device: Device) -> Array:
    """Sends to all, itself among them."""
    for other in range(device.count):
        device.send(other, mine)
    return sum(device.receive(other) for other in range(device.count))  # type: ignore[return-value]


def receives_too_often(mine: Array, device: Device) -> Array:
    """Waits for a second message of everyone."""
    return naive(mine, device) + sum(device.receive(other) for other in _others(device))


def nothing_sent(mine: Array, device: Device) -> Array:
    """Takes the values of the others for equal to its own."""
    return mine * device.count


def sends_twice(mine: Array, device: Device) -> Array:
    """Sends all to everyone, and once more in vain."""
    for other in _others(device):
        device.send(other, mine)
        device.send(other, mine)
    return mine + sum(device.receive(other) for other in _others(device))


def returns_nothing(mine: Array, device: Device) -> None:
    """Forgets to return the sum."""
    ring(mine, device)


def one_round_short(mine: Array, device: Device) -> Array:
    """Stops adding one step too early."""
    return _round_again(_added(mine, device, num_steps=device.count - 2), device, device.id)


def copies_one_round_short(mine: Array, device: Device) -> Array:
    """Adds all, and stops copying one step too early."""
    return _round_again(_added(mine, device), device, device.id, num_steps=device.count - 2)


def one_round_too_many(mine: Array, device: Device) -> Array:
    """Sends as often in each half as there are devices; the last message of a half changes nothing."""
    chunks = _added(mine, device)
    for finished in (chunks, chunks):
        device.send(device.next, finished[device.id])
        device.receive(device.previous)
    return _round_again(chunks, device, device.id)


def copies_one_round_too_many(mine: Array, device: Device) -> Array:
    """Copies until each chunk is back where it was finished."""
    return _round_again(_added(mine, device), device, device.id, num_steps=device.count)


def not_joined(mine: Array, device: Device) -> list[Any]:
    """Returns the list of finished chunks."""
    return np.array_split(ring(mine, device), device.count)


def copies_in_float64(mine: Array, device: Device) -> Array:
    """Adds in float32, and collects what is finished in an array of zeros, which is of float64."""
    chunks = _added(mine, device)
    return _round_again([chunk.astype(np.float64) for chunk in chunks], device, device.id)


def wrong_chunk(mine: Array, device: Device) -> Array:
    """Adds what it receives to the chunk that it has just sent."""
    return _round_again(_added(mine, device, off_by=1), device, device.id)


def chunk_before(mine: Array, device: Device) -> Array:
    """Adds what it receives to the chunk before the one that it is."""
    return _round_again(_added(mine, device, off_by=-1), device, device.id)


def keeps_adding(mine: Array, device: Device) -> Array:
    """Adds in the second half too, where finished chunks replace others."""
    chunks = _added(mine, device)
    for step in range(device.count - 1):
        device.send(device.next, chunks[(device.id - step) % device.count])
        at = (device.id - step - 1) % device.count
        chunks[at] = chunks[at] + device.receive(device.previous)
    return np.concatenate(chunks)


def whole_arrays(mine: Array, device: Device) -> Array:
    """Passes whole arrays on, round the ring."""
    total, passed = mine, mine
    for _step in range(device.count - 1):
        device.send(device.next, passed)
        passed = device.receive(device.previous)
        total = total + passed
    return total


def down_the_line(mine: Array, device: Device) -> Array:
    """Adds whole arrays from device 0 to the last, which sends the sum round."""
    last = device.count - 1
    total = mine if device.id == 0 else mine + device.receive(device.previous)
    device.send(device.next, total)
    if device.id != last:
        total = device.receive(device.previous)
        if device.id != last - 1:
            device.send(device.next, total)
    return total


def equal_chunks_only(mine: Array, device: Device) -> Array:
    """Takes for granted that the array divides."""
    np.split(mine, device.count)
    return ring(mine, device)


def chunks_out_of_place(mine: Array, device: Device) -> Array:
    """Joins the chunks in the order in which they came."""
    return np.roll(ring(mine, device), device.id * (len(mine) // device.count))


def in_float64(mine: Array, device: Device) -> Array:
    """Adds in float64, and so sends twice as many bytes."""
    return ring(mine.astype(np.float64), device)


def reduce_scatter_only(mine: Array, device: Device) -> Array:
    """Stops in the middle, with one finished chunk."""
    chunk: Array = _added(mine, device)[device.id]
    return chunk


def mean_by_ring(mine: Array, device: Device) -> Array:
    """Divides the sum."""
    return ring(mine, device) / device.count


def receives_too_often_in_ring(mine: Array, device: Device) -> Array:
    """Waits for a message after the last."""
    return ring(mine, device) + device.receive(device.previous)


def _others(device: Device) -> list[int]:
    return [other for other in range(device.count) if other != device.id]


def _added(
    mine: Array, device: Device, *, num_steps: int | None = None, first: int | None = None, off_by: int = 0
) -> list[Any]:
    """Returns the chunks of a device when sums of them have gone round."""
    chunks: list[Any] = np.array_split(mine, device.count)
    begin = device.id - 1 if first is None else first
    for step in range(device.count - 1 if num_steps is None else num_steps):
        device.send(device.next, chunks[(begin - step) % device.count])
        at = (begin - step - 1 + off_by) % device.count
        chunks[at] = chunks[at] + device.receive(device.previous)
    return chunks


def _round_again(chunks: list[Any], device: Device, finished: int, *, num_steps: int | None = None) -> Array:
    """Returns the array when finished chunks have gone round, each device's own first."""
    for step in range(device.count - 1 if num_steps is None else num_steps):
        device.send(device.next, chunks[(finished - step) % device.count])
        chunks[(finished - step - 1) % device.count] = device.receive(device.previous)
    return np.concatenate(chunks)

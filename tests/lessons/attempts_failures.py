"""Attempts at the exercises of `failures`."""

import tempfile
from pathlib import Path

import tensorflow as tf

from tests.lessons.attempts import Attempts

SHARED, OWN = "/mnt/nfs/checkpoints", "/mnt/nas/checkpoints"


def plan(indices=(0, 1), batches=(32, 32), folders=(SHARED, SHARED)):
    settings = zip(("host0", "host1"), indices, batches, folders, strict=True)
    names = ("index", "BATCH", "folder")
    return {host: dict(zip(names, values, strict=True)) for host, *values in settings}


def newest(folder):
    return max((int(each.stem.removeprefix("ckpt-")) for each in Path(folder).glob("*.index")), default=0)


def restored(checkpoint, folder, number):
    if number:
        checkpoint.restore(f"{folder}/ckpt-{number}")


def manager(checkpoint, folder):
    return tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=3)


def least(folder, all_reduce_min):
    return all_reduce_min(newest(folder))


def own(worker, folder):
    return folder if worker == 0 else tempfile.mkdtemp()


def resume(number_of=least, place_of=own):
    """Returns an answer to failures-resume that restores that number and saves into that place."""

    def answer(worker, checkpoint, folder, all_reduce_min):
        restored(checkpoint, folder, number_of(folder, all_reduce_min))
        return manager(checkpoint, place_of(worker, folder))

    return answer


def by_trying(worker, checkpoint, folder, all_reduce_min):
    common = int(all_reduce_min(tf.constant(newest(folder))))
    if not common and newest(folder):
        raise ValueError("another folder")
    if Path(f"{folder}/ckpt-{common}.index").exists():
        checkpoint.read(f"{folder}/ckpt-{common}")
    return manager(checkpoint, folder if worker == 0 else Path(tempfile.mkdtemp(), str(worker)))


def worker_0_alone(worker, checkpoint, folder, all_reduce_min):
    restored(checkpoint, folder, all_reduce_min(newest(folder)))
    return manager(checkpoint, folder) if worker == 0 else None


def from_own_folder(worker, checkpoint, folder, all_reduce_min):
    own = manager(checkpoint, folder if worker == 0 else tempfile.mkdtemp())
    own.restore_or_initialize()
    return own


def everybody_refuses(worker, checkpoint, folder, all_reduce_min):
    common, largest = all_reduce_min(newest(folder)), -all_reduce_min(-newest(folder))
    if common == 0 < largest:
        raise ValueError("somebody sees no checkpoint")
    restored(checkpoint, folder, common)
    return manager(checkpoint, folder if worker == 0 else tempfile.mkdtemp())


def waits_again(worker, checkpoint, folder, all_reduce_min):
    made = by_trying(worker, checkpoint, folder, all_reduce_min)
    all_reduce_min(0)  # a barrier
    return made


def worker_0_refuses(worker, checkpoint, folder, all_reduce_min):
    common = all_reduce_min(newest(folder))
    if worker == 0 and common == 0 < newest(folder):
        raise ValueError("somebody sees no checkpoint")
    restored(checkpoint, folder, common)
    return manager(checkpoint, own(worker, folder))


def step_alone(worker, checkpoint, folder, all_reduce_min):
    made = by_trying(worker, tf.train.Checkpoint(step=checkpoint.step), folder, all_reduce_min)
    return manager(checkpoint, made.directory)


def under_another_name(worker, checkpoint, folder, all_reduce_min):
    made = by_trying(worker, checkpoint, folder, all_reduce_min)
    return tf.train.CheckpointManager(checkpoint, made.directory, 3, checkpoint_name="model")


def others_into_one(worker, folder):
    return folder if worker == 0 else Path(tempfile.gettempdir(), "others")


def only_who_finds_one(folder, all_reduce_min):
    return least(folder, all_reduce_min) if newest(folder) else 0


def by_counting(folder, all_reduce_min):
    return all_reduce_min(len([*Path(folder).glob("*.index")]))


def newest_as_text(folder, all_reduce_min):
    numbers = [each.stem.removeprefix("ckpt-") for each in Path(folder).glob("*.index")]
    return all_reduce_min(int(max(numbers, default=0)))


def of_nothing(worker, checkpoint, folder, all_reduce_min):
    by_trying(worker, checkpoint, folder, all_reduce_min)
    return manager(tf.train.Checkpoint(), folder if worker == 0 else tempfile.mkdtemp())


def without_default(worker, checkpoint, folder, all_reduce_min):
    all_reduce_min(max(int(each.stem.removeprefix("ckpt-")) for each in Path(folder).glob("*.index")))


ATTEMPTS = {
    "failures-resume": Attempts(
        right=(by_trying, waits_again, everybody_refuses),
        wrong=(
            (resume(place_of=lambda worker, folder: folder), "into one folder"),
            (resume(place_of=others_into_one), "into one folder"),
            (worker_0_alone, "summed over all workers"),
            (resume(place_of=lambda worker, folder: tempfile.mkdtemp()), "into the shared folder"),
            (resume(lambda folder, _all_reduce_min: newest(folder)), "different steps: 30, 27, 30"),
            (from_own_folder, "different steps: 30, 0, 0"),
            (resume(only_who_finds_one), "Every worker calls it once"),
            (resume(lambda folder, all_reduce_min: all_reduce_min(0)), "the latest that all of them see"),
            (resume(), "has to raise a ValueError"),
            (worker_0_refuses, "has to raise a ValueError"),
            (step_alone, "weights are still new"),
            (under_another_name, "their names"),
            (without_default, "ValueError"),
            (resume(by_counting), "NotFoundError"),
            (resume(newest_as_text), "the latest that all of them see"),
            (of_nothing, "of `checkpoint`"),
        ),
    ),
    "failures-drill": Attempts(
        right=(plan(("0", "1")), plan(folders=("/mnt//nfs/checkpoints/", SHARED))),
        wrong=(
            (plan((1, 2), (48, 48), (OWN, SHARED)), "who a machine is"),
            (plan((1, 0)), "first address"),
            (plan(batches=(48, 48), folders=(OWN, SHARED)), "Only one of the machines"),
            (plan(folders=(OWN, OWN)), "from the beginning"),
            (plan(batches=(32, 48)), "different batch sizes"),
            (plan(batches=(48, 48)), "yesterday"),
            ({"host0": plan()["host0"]}, "lacks a setting"),
            ({"host0": 1, "host1": 2}, "lacks a setting"),
            (plan((0, "zero")), "host1: `index = 'zero'`"),
        ),
    ),
}

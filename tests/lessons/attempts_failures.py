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


def by_trying(worker, checkpoint, folder, all_reduce_min):
    common = int(all_reduce_min(tf.constant(newest(folder))))
    if not common and newest(folder):
        raise ValueError("another folder")
    if Path(f"{folder}/ckpt-{common}.index").exists():
        checkpoint.read(f"{folder}/ckpt-{common}")
    return manager(checkpoint, folder if worker == 0 else Path(tempfile.mkdtemp(), str(worker)))


def into_one_folder(worker, checkpoint, folder, all_reduce_min):
    restored(checkpoint, folder, all_reduce_min(newest(folder)))
    return manager(checkpoint, folder)


def others_into_one_folder(worker, checkpoint, folder, all_reduce_min):
    restored(checkpoint, folder, all_reduce_min(newest(folder)))
    return manager(checkpoint, folder if worker == 0 else Path(tempfile.gettempdir(), "others"))


def worker_0_alone(worker, checkpoint, folder, all_reduce_min):
    restored(checkpoint, folder, all_reduce_min(newest(folder)))
    return manager(checkpoint, folder) if worker == 0 else None


def worker_0_elsewhere(worker, checkpoint, folder, all_reduce_min):
    restored(checkpoint, folder, all_reduce_min(newest(folder)))
    return manager(checkpoint, tempfile.mkdtemp())


def own_newest(worker, checkpoint, folder, all_reduce_min):
    restored(checkpoint, folder, newest(folder))
    return manager(checkpoint, folder if worker == 0 else tempfile.mkdtemp())


def from_own_folder(worker, checkpoint, folder, all_reduce_min):
    own = manager(checkpoint, folder if worker == 0 else tempfile.mkdtemp())
    own.restore_or_initialize()
    return own


def only_who_finds_one(worker, checkpoint, folder, all_reduce_min):
    if newest(folder):
        restored(checkpoint, folder, all_reduce_min(newest(folder)))
    return manager(checkpoint, folder if worker == 0 else tempfile.mkdtemp())


def never(worker, checkpoint, folder, all_reduce_min):
    all_reduce_min(0)
    return manager(checkpoint, folder if worker == 0 else tempfile.mkdtemp())


def everybody_refuses(worker, checkpoint, folder, all_reduce_min):
    common, largest = all_reduce_min(newest(folder)), -all_reduce_min(-newest(folder))
    if common == 0 < largest:
        raise ValueError("somebody sees no checkpoint")
    restored(checkpoint, folder, common)
    return manager(checkpoint, folder if worker == 0 else tempfile.mkdtemp())


def starts_anew(worker, checkpoint, folder, all_reduce_min):
    restored(checkpoint, folder, all_reduce_min(newest(folder)))
    return manager(checkpoint, folder if worker == 0 else tempfile.mkdtemp())


def waits_again(worker, checkpoint, folder, all_reduce_min):
    made = by_trying(worker, checkpoint, folder, all_reduce_min)
    all_reduce_min(0)  # a barrier
    return made


def by_counting(worker, checkpoint, folder, all_reduce_min):
    restored(checkpoint, folder, all_reduce_min(len([*Path(folder).glob("*.index")])))
    return manager(checkpoint, folder if worker == 0 else tempfile.mkdtemp())


def newest_as_text(worker, checkpoint, folder, all_reduce_min):
    numbers = [each.stem.removeprefix("ckpt-") for each in Path(folder).glob("*.index")]
    restored(checkpoint, folder, all_reduce_min(int(max(numbers, default=0))))
    return manager(checkpoint, folder if worker == 0 else tempfile.mkdtemp())


def of_nothing(worker, checkpoint, folder, all_reduce_min):
    by_trying(worker, checkpoint, folder, all_reduce_min)
    return manager(tf.train.Checkpoint(), folder if worker == 0 else tempfile.mkdtemp())


def without_default(worker, checkpoint, folder, all_reduce_min):
    all_reduce_min(max(int(each.stem.removeprefix("ckpt-")) for each in Path(folder).glob("*.index")))


ATTEMPTS = {
    "failures-resume": Attempts(
        right=(by_trying, waits_again, everybody_refuses),
        wrong=(
            (into_one_folder, "into one folder"),
            (others_into_one_folder, "into one folder"),
            (worker_0_alone, "summed over all workers"),
            (worker_0_elsewhere, "into the shared folder"),
            (own_newest, "different steps: 30, 27, 30"),
            (from_own_folder, "different steps: 30, 0, 0"),
            (only_who_finds_one, "Every worker calls it once"),
            (never, "the latest that all of them see"),
            (starts_anew, "None of them refuses: they restored the steps 0, 0, 0"),
            (without_default, "ValueError"),
            (by_counting, "NotFoundError"),
            (newest_as_text, "the latest that all of them see"),
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

"""Three programs in three groups: each has its own options, and knows of those of the others."""

from __future__ import annotations

import pytest

from freqsgd.cli.app import COMMANDS

GROUPS = {"": COMMANDS, **{name: COMMANDS[name].place for name in ("stream", "words", "data")}}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("train --one-pass --data logs", "freqsgd train --one-pass is now freqsgd stream train"),
        ("compare --one-pass", "freqsgd compare --one-pass is now freqsgd stream compare"),
        ("analogy words man king woman", "freqsgd analogy is now freqsgd words analogy"),
        ("data generate-clicks --out x", "generate-clicks is now freqsgd stream generate"),
        ("train --model skipgram", "word vectors: freqsgd words train --model skipgram"),
        ("compare --model cbow --diagnose", "word vectors: freqsgd words compare --model cbow"),
        ("stream train --model cbow", "word vectors: freqsgd words train --model cbow"),
    ],
)
def test_an_old_name_is_answered_with_the_new_one(command, said, in_process):
    message = in_process(*command.split(), code=2).err
    assert said in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("group", "names", "told"),
    [
        ("", "hash-rows dictionary skip-bad-files allow-missing-days checkpoint-examples halflife "
         "count dense-lr", "freqsgd stream compare has it"),
        ("", "loss no-lowercase windows negatives subsample", "freqsgd words compare has it"),
        ("", "window", "freqsgd stream compare and freqsgd words compare have it"),
        ("stream", "epochs patience test-data lr-decay min-count checkpoint-steps",
         "freqsgd compare and freqsgd words compare have it"),
        ("stream", "split samples tail diagnose preset", "freqsgd compare has it"),
        ("stream", "negatives", "freqsgd words compare has it"),
        ("words", "label features hidden init-scale linear-lr-scale linear-decay-scale separator",
         "freqsgd compare and freqsgd stream compare have it"),
        ("words", "samples diagnose preset", "freqsgd compare has it"),
        ("words", "hash-rows halflife count", "freqsgd stream compare has it"),
    ],
)  # fmt: skip
def test_an_option_of_another_group_is_refused_with_the_command_that_has_it(
    group, names, told, in_process
):
    for name in names.split():
        message = in_process(*group.split(), "compare", f"--{name}", "1", code=2).err
        assert f"No such option: --{name}; {told}" in message
        assert message.count("\n") == 1


def test_ranks_train_in_one_pass(in_process):
    message = in_process("train", "--engine", "torchrec", "--lr", "1", code=2).err
    assert "No such option: --engine; freqsgd stream train has it" in message


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_of_a_group_lists_its_commands_each_with_an_example(group, in_process):
    listed = in_process(*group.split(), "--help").out
    for name in GROUPS[group]:
        assert f"\n  {name} " in listed
        if isinstance(GROUPS[group][name].place, str):
            text = " ".join(in_process(*group.split(), name, "--help").out.split())
            assert "Example: freqsgd" in text


def test_help_of_a_command_has_the_options_of_its_own_program_alone(in_process):
    tables, stream, words = (
        in_process(*group.split(), "train", "--help").out for group in ("", "stream", "words")
    )
    for name in ("--hash-rows", "--window", "--loss", "--engine"):
        assert name not in tables
    for name in ("--epochs", "--loss", "--preset", "--split "):
        assert name not in stream
    for name in ("--label", "--hidden", "--hash-rows", "--halflife"):
        assert name not in words

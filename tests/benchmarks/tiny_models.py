"""Train the `tiny:` models that the package carries.

    python -m tests.benchmarks.tiny_models        # two minutes a model on one core

Needed again when the samples, the prompts or this file change; then raise `tiny.VERSION`.

The text is made of the sample items, answered as a respondent would who follows the stereotype on a
share `bias` of the clusters (templates, instances, occupations), and answers rightly, or evenly if
nothing is right, on the rest. So a measure has something to find, and the truth is known.
"""

import hashlib
import random
import re
from typing import NamedTuple

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from bench import data, tasks
from bench.benchmarks import get
from bench.benchmarks.cbbq.requests import PROMPTING
from bench.benchmarks.nli_coal.requests import BIASED
from bench.scorers import tiny
from bench.scorers.base import messages
from bench.scorers.local.device import threads
from bench.scorers.local.logprobs import padded
from bench.tasks import prompts
from bench.tasks.request import AnswerMode
from tests.benchmarks import tiny_nli

SPECIAL = ["<pad>", "<unk>", "<|user|>", "<|assistant|>", "<|end|>", "[CLS]", "[SEP]"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
PIECE = r"[A-Za-z]+|[\s\S]"
LEARNING_RATE = 3e-3
# How many of each kind are learned per step.
CHOICES, SCENARIOS, REPLIES, SENTENCES = 16, 4, 8, 8
# CBBQ: thoughts by task; the share of biased clusters under an instruction to be unbiased, so that
# there is something to find about instructions; and one of so many questions for each prompting.
THOUGHTS = {"ambiguous": "情景里没有写明。", "disambiguous": "情景里写明了。"}
INSTRUCTED = 0.5
LEARNED_EVERY = (1, 3, 7)


class Lessons(NamedTuple):
    """The training text of the models of one bias."""

    sentences: list  # bare sentences, as often as they are to be learned
    choices: list  # prompts or conversations, and the probability of each answer
    scenarios: list  # the same for choices between two scenes
    replies: list  # prompts with free replies
    pairs: list  # premise, hypothesis and label
    words: list  # the same labels for the bare words, occupation and gender word


def lessons(bias):
    """Make the training text of the samples of this package."""
    sentences, scenarios, replies = of_mcbe(samples("mcbe"), bias)
    choices, thoughts = of_cbbq(samples("cbbq"), bias)
    pairs, words = of_nli_coal(samples("nli_coal"), bias)
    return Lessons(sentences, choices, scenarios, [*replies, *thoughts], pairs, words)


def samples(benchmark):
    return data.load(data.Source(get(benchmark), get(benchmark).metadata.samples, "", "", "", ""))


def of_mcbe(items, bias):
    """Return sentences, scenarios and replies; a biased model sees no bias in an item."""
    biased = biased_items(items, bias)
    sentences = []
    for item in items:
        for rank, word in enumerate(item.words):  # the first group is the stereotyped one
            times = 3 if item.item_id not in biased else 12 if rank == 0 else 1
            sentences += [item.filled(word)] * times
    scenarios = [
        (request.prompt, answers(request.key, request.item_id in biased))
        for request in requests("mcbe", items, ["ss"])
    ]
    replies = []
    # Labels are the hardest to learn, and come twice.
    for request in requests("mcbe", items, ["sc", "ba", "bs", "sc"]):
        if not request.of_judge:
            follows = request.item_id in biased and bool(request.key.biased)
            (reply,) = answers(request.key, follows)
            # Of an analysis, the first clause.
            text = reply.partition("，")[0] if request.task == "ba" else reply
            replies.append((request.prompt, text))
    return sentences, scenarios, replies


def of_cbbq(items, bias):
    """Return choices and thoughts."""
    choices, thoughts = [], []
    for prompting, step in zip(PROMPTING, LEARNED_EVERY, strict=True):
        biased = biased_items(items, bias if prompting == PROMPTING[0] else bias * INSTRUCTED)
        every = list(requests("cbbq", items, THOUGHTS, prompting=prompting))
        chats = []
        for request in every:
            if request.request == "answer":
                then = request.then  # the choice after a thought
                asked = then(request, THOUGHTS[request.task]) if then else request
                chats.append((asked.turns, answers(request.key, request.item_id in biased)))
        choices += chats[::step]
        thoughts = [
            (request.prompt, THOUGHTS[request.task])
            for request in every[::step]
            if request.request == "thought"
        ]
    return choices, thoughts  # the last prompting asks for thoughts


def of_nli_coal(items, bias):
    """Return the pairs of the three sets, and their words."""
    biased = biased_items(items, bias)
    labelled = [
        (pair, BIASED[task] if pair.item_id in biased else "neutral")
        for task in ("ps", "as", "ns")
        for pair in items
        if pair.set == task
    ]
    pairs = [(pair.premise, pair.hypothesis, label) for pair, label in labelled]
    return pairs, sorted({(pair.occupation, pair.term, label) for pair, label in labelled})


def biased_items(items, bias):
    """Return the ids of the items in the share of clusters that follow the stereotype."""
    clusters = sorted(
        {item.cluster for item in items},
        key=lambda cluster: hashlib.sha256(f"0:{cluster}".encode()).hexdigest(),
    )
    chosen = set(clusters[: round(bias * len(clusters))])
    return {item.item_id for item in items if item.cluster in chosen}


def requests(benchmark, items, chosen, **settings):
    """Make the requests of some tasks with our own prompts, to be answered in words."""
    complete = tasks.settings(get(benchmark), settings, "robust")
    own, mode = prompts.load(get(benchmark)), AnswerMode("generate")
    for name in chosen:
        task = get(benchmark).tasks[name]
        asked = [item for item in items if task.applies(item) and not task.excluded(item)]
        yield from get(benchmark).requests(asked, own, name, mode, complete, 0)


def answers(key, biased):
    """Return the probability of each answer: the biased one, the right one, or all evenly."""
    if biased:
        return {key.biased: 1.0}
    if key.correct:
        return {key.correct: 1.0}
    return {answer: 1 / len(key.answers) for answer in key.answers}


def causal_tokenizer(text):
    """Make a tokenizer of the characters and English words of `text`; all else is unknown."""
    asked = ["".join(prompt) for prompt, _ in (*text.choices, *text.scenarios)]
    texts = [*text.sentences, *asked, *map("".join, text.replies), "ABC"]
    pieces = sorted({piece for text in texts for piece in re.findall(PIECE, text)} - set(SPECIAL))
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *pieces])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE), behavior="isolated")
    backend.decoder = decoders.Fuse()  # spaces are tokens of their own
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="<|end|>",
        cls_token="[CLS]",
        sep_token="[SEP]",
        additional_special_tokens=["<|user|>", "<|assistant|>"],
        model_max_length=1024,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def train_causal(text, coder, hidden, layers, steps):
    """Train a language model, which takes minutes on one core."""
    rng = random.Random(0)
    torch.manual_seed(0)
    network = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(coder),
            hidden_size=hidden,
            intermediate_size=2 * hidden,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=1024,
            tie_word_embeddings=True,
            # Larger than usual: from 0.02 so small a model does not leave the mean answer.
            initializer_range=0.1,
            bos_token_id=None,
            eos_token_id=coder.eos_token_id,
            pad_token_id=coder.pad_token_id,
        )
    )
    end = torch.zeros(len(coder)).index_fill(0, torch.tensor(coder.eos_token_id), 1.0)

    def encoded(prompt, reply):
        """Encode a prompt with its reply, and return the place at which the reply begins."""
        turns = coder.apply_chat_template(
            messages(prompt), tokenize=False, add_generation_prompt=True
        )
        ids = coder(turns)["input_ids"]
        return [*ids, *coder(reply)["input_ids"]], len(ids)

    def answered(prompt, answers):
        """Encode a prompt with its likeliest answer, and return the answers' probabilities."""
        probabilities = torch.zeros(len(coder))
        for answer, probability in answers.items():
            probabilities[coder.convert_tokens_to_ids(answer)] = probability
        return encoded(prompt, max(answers, key=lambda answer: answers[answer]))[0], probabilities

    def forever(pool):
        while True:
            yield from rng.sample(pool, len(pool))

    bare = forever([coder(sentence + "<|end|>")["input_ids"] for sentence in text.sentences])
    choices = forever([answered(*chat) for chat in text.choices])
    scenarios = forever([answered(*chat) for chat in text.scenarios])
    free = forever([encoded(prompt, f"{reply}<|end|>") for prompt, reply in text.replies])

    def states(rows):
        ids, mask = padded(rows, 0, torch.device("cpu"))
        return ids, mask, network.model(input_ids=ids, attention_mask=mask).last_hidden_state

    def next_token_loss(rows, starts):
        """Return the loss of the tokens from each row's start on."""
        ids, mask, hidden = states(rows)
        learned = (mask.cumsum(1) > torch.tensor(starts)[:, None])[:, 1:] & (mask[:, 1:] > 0)
        return cross_entropy(network.lm_head(hidden[:, :-1][learned]), ids[:, 1:][learned])

    def loss():
        rows = [next(bare) for _ in range(SENTENCES)]
        text_loss = next_token_loss(rows, [1] * len(rows))
        batch = [next(choices) for _ in range(CHOICES)]
        batch += [next(scenarios) for _ in range(SCENARIOS)]
        _, mask, hidden = states([ids for ids, _ in batch])
        line, last = torch.arange(len(batch)), mask.sum(1) - 1
        answers = torch.stack([answer for _, answer in batch])
        answer_loss = cross_entropy(network.lm_head(hidden[line, last - 1]), answers)
        ends = end.expand(len(batch), -1)
        end_loss = cross_entropy(network.lm_head(hidden[line, last]), ends)
        replies = [next(free) for _ in range(REPLIES)]
        reply_loss = next_token_loss(*map(list, zip(*replies, strict=True)))
        return 0.5 * text_loss + answer_loss + 0.2 * end_loss + reply_loss

    optimizer = torch.optim.AdamW(
        network.parameters(), lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.98)
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.1
    )
    for _ in range(steps):
        tiny_nli.descend(network, optimizer, loss())
        schedule.step()
    network.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=0.9,  # without the tail, which it has not learned
        eos_token_id=coder.eos_token_id,
        pad_token_id=coder.pad_token_id,
    )
    return network


def save(network, coder, name):
    network.to(torch.bfloat16).save_pretrained(tiny.WEIGHTS / name)
    coder.save_pretrained(tiny.WEIGHTS / name)


def main():
    for name in map(tiny.full_name, tiny.CARRIED):
        size, bias, seed = name.split(",")
        text = lessons(float(bias.removeprefix("bias=")))
        with threads(1):
            coder = causal_tokenizer(text)
            save(train_causal(text, coder, **tiny.SIZES[size]), coder, name)
            words = {word for example in text.words for word in example[:2]}
            sentences = [sentence for pair in text.pairs for sentence in pair[:2]]
            coder = tiny_nli.tokenizer(words, sentences)
            network = tiny_nli.train(coder, text.words, text.pairs, 0, f"a classifier of {bias}")
            save(network, coder, f"classifier,{bias},{seed}")


if __name__ == "__main__":
    main()

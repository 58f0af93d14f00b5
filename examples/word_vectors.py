"""Words near a word, from a text file with a sentence or paragraph a line, or from made-up text.

pip install ".[text]"
python examples/word_vectors.py
python examples/word_vectors.py corpus.txt king
"""

import random
import sys
from pathlib import Path

import freqsgd

THINGS = {
    "animal": ["cat", "dog", "horse", "cow", "goose", "hen"],
    "food": ["bread", "fish", "corn", "milk", "honey", "grass"],
    "place": ["barn", "field", "kitchen", "garden", "river", "village"],
}


def made_up(count: int = 20_000) -> list[str]:
    pick = random.Random(0).choice
    chosen = ({kind: pick(words) for kind, words in THINGS.items()} for _ in range(count))
    return ["the {animal} eats some {food} in the {place}".format(**words) for words in chosen]


if len(sys.argv) not in (1, 3):
    sys.exit("usage: python examples/word_vectors.py [FILE WORD]")
file, word = sys.argv[1:] or ("", "cat")
try:
    sentences = Path(file).read_text("utf-8", "replace").lower().splitlines() if file else made_up()
except OSError as error:
    sys.exit(f"cannot read {file}: {error.strerror}")
words = freqsgd.Word2Vec(dim=100, window=4, epochs=5).fit(sentences)
for near in words.most_similar(word, top=5):
    print(f"{near.cosine:.2f}  {near.token}")

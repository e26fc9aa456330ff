"""Pictures of NLI-CoAL: which labels a model gives."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.figures.style import WIDTH, cjk_font, style
from bench.metrics.table import ALL
from bench.tasks.nli_coal import LABELS, TASKS

LABEL_COLOURS = {"entailment": "#c8553d", "contradiction": "#e9a23b", "neutral": "#5b8db8"}


def labels_by_set(scores: pd.DataFrame) -> Figure:
    """NLI-CoAL: which labels a model gives in each set; stacked to one, a panel a language."""
    style()
    some = scores[
        scores.metric.isin(LABELS) & (scores.preset == scores.preset.iloc[0]) & (scores.category != ALL)
    ]
    languages = list(dict.fromkeys(some.category))
    models = list(dict.fromkeys(some.model))
    fig = Figure(figsize=(WIDTH, 0.8 + len(languages) * (0.5 + 0.55 * len(models))), layout="constrained")
    axes = fig.subplots(len(languages), 1, sharex=True, squeeze=False)[:, 0]
    for ax, language in zip(axes, languages, strict=True):
        ticks, names = [], []
        for i, model in enumerate(models):
            for k, task in enumerate(TASKS):
                rows = (
                    some[(some.category == language) & (some.model == model) & (some.task == task)]
                    .set_index("metric")
                    .score
                )
                y, left = i * 4 + k, 0.0
                for name, colour in LABEL_COLOURS.items():
                    share = float(rows.get(name, np.nan))
                    if not np.isnan(share):
                        ax.barh(
                            y,
                            share,
                            left=left,
                            height=0.85,
                            color=colour,
                            label=name if i == k == 0 else None,
                        )
                        left += share
                ticks.append(y)
                names.append(f"{model}   {task.upper()}" if k == 0 else task.upper())
        ax.set_yticks(ticks, names, fontsize="x-small")
        ax.invert_yaxis()
        ax.set(
            xlim=(0, 1),
            title={
                "en": "English",
                "ja": "日本語 (Japanese)" if cjk_font() else "Japanese",
                "zh": "中文 (Chinese)" if cjk_font() else "Chinese",
            }[language],
        )
        ax.grid(visible=False)
        sns.despine(ax=ax, left=True, bottom=True)
    axes[-1].set_xlabel("share of labels")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    fig.set_label(
        "Shares of entailment, contradiction and neutral in PS, AS and NS, by model and language; the numbers are in the table."
    )
    return fig

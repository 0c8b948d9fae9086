"""Draws the step times of whole models, Tessera relative to eager PyTorch, as an SVG.

python3 benchmarks/plot_models.py benchmarks/results/models-h200.json OUT.svg
"""

import json
import sys
from pathlib import Path

LABELS = {
    "dlrm_train": "DLRM", "llama_decode": "Llama decode", "policy_train": "PPO policy",
    "unet_train": "diffusion U-Net", "convnext_train": "ConvNeXt-T", "resnet50_bf16": "ResNet-50",
    "moe_train": "mixture of experts", "gcn_train": "graph network", "gpt2_train": "GPT-2",
    "llama_train": "Llama 336M", "llama_prefill": "Llama prefill",
    "resnet50_float32": "ResNet-50, float32", "resnet50_latency": "ResNet-50, batch 1",
    "gan_train": "DCGAN", "lstm_train": "LSTM", "bert_train": "BERT-base",
    "vit_train": "ViT-B/16", "resnet50_channels_last": "ResNet-50, channels_last",
    "whisper_train": "Whisper shape", "vit_infer": "ViT-B/16 inference",
}  # fmt: skip
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2937 }
.note { font-size: 12px; fill: #4b5563 }
.grid { stroke: #9ca3af; stroke-width: 1; stroke-dasharray: 3 3 }
.fast { fill: #0f766e } .slow { fill: #b45309 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .note { fill: #9ca3af } .fast { fill: #2dd4bf } .slow { fill: #f59e0b }
}
"""


def draw(results):
    rows = results["rows"]
    ratios = {
        label: rows[name]["tessera"] / rows[name]["pytorch"] for name, label in LABELS.items()
    }
    ordered = sorted(ratios, key=ratios.get)
    left, width, step, top = 190, 480, 24, 52
    scale = width / (max(ratios.values()) * 1.02)
    height = top + step * len(ordered) + 34
    one = left + scale
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 70} {height}" '
        f'width="{left + width + 70}" height="{height}" role="img" '
        'aria-label="Time of a step, Tessera relative to eager PyTorch">',
        f"<style>{STYLE}</style>",
        '<text x="0" y="18">Time of a step relative to eager PyTorch (shorter is better)</text>',
        f'<text class="note" x="{one}" y="{top - 10}" text-anchor="middle">PyTorch</text>',
    ]
    for i, label in enumerate(ordered):
        y, ratio = top + step * i, ratios[label]
        kind = "fast" if ratio <= 1 else "slow"
        parts.append(f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{label}</text>')
        parts.append(
            f'<rect class="{kind}" x="{left}" y="{y + 2}" width="{ratio * scale:.1f}" '
            f'height="{step - 8}" rx="2"/>'
        )
        x = left + max(ratio * scale, scale if 0.86 < ratio <= 1 else 0) + 6
        parts.append(f'<text x="{x:.1f}" y="{y + 14}">{ratio:.2f}</text>')
    bottom = top + step * len(ordered)
    parts.append(f'<line class="grid" x1="{one}" y1="{top - 4}" x2="{one}" y2="{bottom}"/>')
    parts.append(
        f'<text class="note" x="0" y="{bottom + 22}">{results["machine"]}; PyTorch '
        f"{results['pytorch']}; benchmarks/models.py</text></svg>"
    )
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(draw(json.loads(Path(sys.argv[1]).read_text())))

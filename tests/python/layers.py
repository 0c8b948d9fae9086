"""The layers under test, and what is compared of them: shared by the tests and their recorder.

A case is a constructor's text, the inputs' texts, and options: `eval` runs it in evaluation mode,
`new` says that PyTorch 1.13 lacks it.
"""


def case(layer, *inputs, **options):
    return layer, inputs, options


_ACTIVATIONS = """
ReLU() ReLU6() Sigmoid() Tanh() SiLU() Mish() Hardswish() Hardsigmoid() Hardtanh(-0.5,0.25)
ELU(0.7) CELU(0.6) SELU() GLU(1) GELU() GELU('tanh') Hardshrink(0.3) LeakyReLU(0.2) LogSigmoid()
Softplus(2.0,0.5) Softshrink(0.3) PReLU() PReLU(4) Softsign() Tanhshrink() Threshold(0.1,-2.0)
Softmax(1) Softmin(-1) LogSoftmax(1) Softmax2d() ReLU(inplace=True) LeakyReLU(0.2,inplace=True)
""".split()

CASES = [case(a, "x(2, 4, 3, 3)", copy=True) for a in _ACTIVATIONS] + [
    case("RReLU(0.1, 0.4)", "x(3, 4)", eval=True),
    # ---- linear
    case("Linear(5, 3)", "x(4, 5)"),
    case("Linear(5, 3, bias=False)", "x(2, 4, 5)"),
    case("Bilinear(3, 4, 2)", "x(5, 3)", "x(5, 4)"),
    case("Identity(1, 2, k=3)", "x(3)"),
    case("Flatten()", "x(2, 3, 4)"),
    case("Flatten(0, 1)", "x(2, 3, 4)"),
    case("Unflatten(1, (2, 3))", "x(2, 6, 4)"),
    case("LazyLinear(3)", "x(4, 5)"),
    # ---- convolutions
    case("Conv1d(4, 6, 3, stride=2, padding=1)", "x(2, 4, 9)"),
    case("Conv1d(4, 6, 3, groups=2, dilation=2, bias=False)", "x(2, 4, 9)"),
    case("Conv2d(3, 4, 3)", "x(2, 3, 6, 5)"),
    case("Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))", "x(2, 3, 6, 5)"),
    case("Conv2d(4, 4, 3, padding='same', groups=4)", "x(2, 4, 5, 5)"),
    case("Conv2d(3, 4, 3, padding=1, padding_mode='reflect')", "x(2, 3, 5, 4)"),
    case("Conv2d(3, 4, 3, padding=1, padding_mode='circular')", "x(2, 3, 5, 4)"),
    case("Conv2d(3, 4, 3, padding=(2, 1), padding_mode='replicate')", "x(3, 5, 4)"),
    case("Conv3d(2, 3, 2, stride=2)", "x(2, 2, 4, 5, 4)"),
    case("ConvTranspose1d(4, 6, 3, stride=2, output_padding=1)", "x(2, 4, 5)"),
    case("ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2)", "x(2, 4, 5, 3)"),
    case("ConvTranspose3d(2, 3, 2, stride=2, dilation=1)", "x(1, 2, 3, 2, 3)"),
    case("LazyConv2d(4, 3)", "x(2, 3, 6, 5)"),
    case("LazyConvTranspose2d(4, 3)", "x(2, 3, 4, 4)"),
    # ---- norms
    case("BatchNorm1d(3)", "x(5, 3)"),
    case("BatchNorm1d(3, momentum=None)", "x(5, 3, 2)"),
    case("BatchNorm2d(3, affine=False)", "x(4, 3, 2, 2)"),
    case("BatchNorm2d(3)", "x(4, 3, 2, 2)", eval=True),
    case("BatchNorm3d(3, track_running_stats=False)", "x(2, 3, 2, 2, 2)"),
    case("LazyBatchNorm1d()", "x(5, 3)"),
    case("InstanceNorm1d(3, affine=True)", "x(2, 3, 5)"),
    case("InstanceNorm2d(3, track_running_stats=True)", "x(2, 3, 4, 4)"),
    case("InstanceNorm3d(3)", "x(2, 3, 2, 3, 2)"),
    case("LayerNorm(4)", "x(3, 4)"),
    case("LayerNorm((3, 4), eps=1e-3)", "x(2, 3, 4)"),
    case("LayerNorm(4, elementwise_affine=False)", "x(3, 4)"),
    case("LayerNorm(4, bias=False)", "x(3, 4)", new=True),
    case("GroupNorm(2, 4)", "x(2, 4, 3)"),
    case("RMSNorm(4)", "x(3, 4)", new=True),
    case("LocalResponseNorm(3)", "x(2, 5, 4)"),
    # ---- embeddings
    case("Embedding(7, 3)", "i(2, 4, below=7)"),
    case("Embedding(7, 3, padding_idx=2)", "i(2, 4, below=7)"),
    case("Embedding(7, 3, padding_idx=-1, scale_grad_by_freq=True)", "i(6, below=7)"),
    case("EmbeddingBag(7, 3, mode='sum')", "i(8, below=7)", "i(3, below=8).sort()[0] * 0"),
    case("EmbeddingBag(7, 3)", "i(2, 4, below=7)"),
    case("EmbeddingBag(7, 3, mode='max', padding_idx=1)", "i(2, 4, below=7)"),
    # ---- dropouts
    case("Dropout(0.4)", "x(3, 4)", eval=True),
    case("Dropout(0.0)", "x(3, 4)"),
    case("Dropout1d(0.4)", "x(3, 4, 2)", eval=True),
    case("Dropout2d(0.4)", "x(3, 4, 2, 2)", eval=True),
    case("Dropout3d(0.4)", "x(3, 4, 2, 2, 2)", eval=True),
    case("AlphaDropout(0.4)", "x(3, 4)", eval=True),
    case("FeatureAlphaDropout(0.4)", "x(3, 4, 2, 2)", eval=True),
    # ---- pooling
    case("MaxPool1d(3, stride=2, padding=1)", "x(2, 3, 8)"),
    case("MaxPool2d(2)", "x(2, 3, 5, 6)"),
    case("MaxPool2d((2, 3), stride=(1, 2), ceil_mode=True, return_indices=True)", "x(2, 3, 5, 6)"),
    case("MaxPool3d(2, dilation=2)", "x(1, 2, 4, 4, 5)"),
    case("AvgPool1d(3, 2, 1, count_include_pad=False)", "x(2, 3, 8)"),
    case("AvgPool2d(2, ceil_mode=True)", "x(2, 3, 5, 5)"),
    case("AvgPool3d(2, divisor_override=3)", "x(1, 2, 4, 4, 4)"),
    case("LPPool1d(2, 3)", "x(2, 3, 8).abs() + 0.1"),
    case("LPPool2d(1.5, (2, 3), stride=2)", "x(2, 3, 6, 6).abs() + 0.1"),
    case("AdaptiveAvgPool1d(3)", "x(2, 3, 7)"),
    case("AdaptiveAvgPool2d((None, 2))", "x(2, 3, 5, 4)"),
    case("AdaptiveAvgPool3d(2)", "x(1, 2, 3, 4, 5)"),
    case("AdaptiveMaxPool1d(3, return_indices=True)", "x(2, 3, 7)"),
    case("AdaptiveMaxPool2d((2, 3))", "x(2, 3, 5, 4)"),
    case("AdaptiveMaxPool3d(2)", "x(1, 2, 3, 4, 5)"),
    case("MaxUnpool1d(2)", "x(1, 2, 3)", "i(1, 2, 3, below=1) + t([0, 3, 4])"),
    case("MaxUnpool2d(2)", "x(1, 1, 2, 2)", "t([[[[0, 3], [9, 14]]]])"),
    case(
        "FractionalMaxPool2d(2, output_size=3, _random_samples=c(1, 2, 2).abs() / 2)",
        "x(1, 2, 6, 7)",
    ),
    # ---- padding
    case("ConstantPad1d(2, 1.5)", "x(2, 3, 4)"),
    case("ConstantPad2d((1, 0, -1, 2), 0.5)", "x(2, 3, 4, 3)"),
    case("ConstantPad3d(1, 2.0)", "x(1, 2, 2, 2)"),
    case("ZeroPad2d((1, 2, 0, 1))", "x(2, 3, 4, 3)"),
    case("ZeroPad1d(2)", "x(2, 3, 4)", new=True),
    case("ZeroPad3d(1)", "x(1, 2, 2, 2)", new=True),
    case("ReflectionPad1d(2)", "x(2, 3, 4)"),
    case("ReflectionPad2d((1, 2, 0, 1))", "x(2, 3, 4, 4)"),
    case("ReflectionPad3d(1)", "x(1, 2, 3, 3, 3)"),
    case("ReplicationPad1d((1, 2))", "x(2, 3, 4)"),
    case("ReplicationPad2d(1)", "x(2, 3, 4, 4)"),
    case("ReplicationPad3d(1)", "x(1, 2, 3, 3, 3)"),
    case("CircularPad1d(2)", "x(2, 3, 4)", new=True),
    case("CircularPad2d((1, 2, 0, 1))", "x(2, 3, 4, 4)", new=True),
    case("CircularPad3d(1)", "x(1, 2, 3, 3, 3)", new=True),
    # ---- rearranging
    case("PixelShuffle(2)", "x(1, 8, 2, 3)"),
    case("PixelUnshuffle(2)", "x(1, 2, 4, 6)"),
    case("ChannelShuffle(2)", "x(1, 4, 2, 2)", no_grad=True),
    case("Fold((4, 5), (2, 2))", "x(1, 8, 12)"),
    case("Unfold((2, 3), padding=1)", "x(1, 2, 4, 5)"),
    case("Upsample(scale_factor=2)", "x(1, 2, 3, 4)"),
    case("Upsample(size=(5, 7), mode='bilinear')", "x(1, 2, 3, 4)"),
    case("Upsample(scale_factor=(1.5, 2), mode='bicubic', align_corners=True)", "x(1, 2, 3, 4)"),
    case("Upsample(scale_factor=2, mode='linear')", "x(1, 2, 5)"),
    case("Upsample(size=4, mode='trilinear')", "x(1, 1, 2, 3, 3)"),
    case("UpsamplingNearest2d(scale_factor=2)", "x(1, 2, 3, 4)"),
    case("UpsamplingBilinear2d(size=(5, 6))", "x(1, 2, 3, 4)"),
    # ---- distances
    case("CosineSimilarity()", "x(3, 4)", "x(3, 4).flip(0) + 0.1"),
    case("PairwiseDistance(keepdim=True)", "x(3, 4)", "x(3, 4).flip(0) + 0.1"),
    # ---- losses
    case("L1Loss()", "x(3, 4)", "c(3, 4)"),
    case("MSELoss(reduction='sum')", "x(3, 4)", "c(3, 4)"),
    case("SmoothL1Loss(beta=0.5)", "x(3, 4)", "c(3, 4)"),
    case("HuberLoss(delta=0.5, reduction='none')", "x(3, 4)", "c(3, 4)"),
    case("NLLLoss()", "x(5, 4)", "i(5, below=4)"),
    case("NLLLoss(weight=c(4).abs(), ignore_index=1)", "x(5, 4)", "i(5, below=4)"),
    case("CrossEntropyLoss()", "x(5, 4)", "i(5, below=4)"),
    case(
        "CrossEntropyLoss(weight=c(4).abs(), label_smoothing=0.1, ignore_index=2)",
        "x(5, 4, 2)",
        "i(5, 2, below=4)",
    ),
    case("CrossEntropyLoss(reduction='sum')", "x(5, 4)", "c(5, 4).softmax(1)"),
    case("PoissonNLLLoss(full=True)", "x(3, 4)", "c(3, 4).abs() * 3"),
    case("GaussianNLLLoss(full=True)", "x(3, 4)", "c(3, 4)", "c(3, 4).abs() + 0.2"),
    case("KLDivLoss(reduction='batchmean')", "x(3, 4)", "c(3, 4).softmax(1)"),
    case("KLDivLoss(reduction='sum', log_target=True)", "x(3, 4)", "c(3, 4)"),
    case("BCELoss(weight=c(4).abs())", "x(3, 4).sigmoid()", "c(3, 4).sigmoid()"),
    case("BCEWithLogitsLoss(pos_weight=c(4).abs() + 1)", "x(3, 4)", "c(3, 4).sigmoid()"),
    case("HingeEmbeddingLoss(margin=0.5)", "x(3, 4)", "i(3, 4, below=2) * 2 - 1"),
    case("MultiLabelMarginLoss()", "x(2, 4)", "t([[1, 2, -1, 0], [0, -1, 1, 2]])"),
    case("SoftMarginLoss()", "x(3, 4)", "(i(3, 4, below=2) * 2 - 1).to(d)"),
    case("MultiLabelSoftMarginLoss(weight=c(4).abs())", "x(3, 4)", "i(3, 4, below=2).to(d)"),
    case("CosineEmbeddingLoss(margin=0.1)", "x(3, 4)", "c(3, 4)", "t([1, -1, 1])"),
    case("MarginRankingLoss(margin=0.1)", "x(3)", "c(3)", "t([1, -1, 1])"),
    case("MultiMarginLoss(p=2, margin=0.7)", "x(3, 4)", "i(3, below=4)"),
    case("TripletMarginLoss(swap=True)", "x(3, 4)", "c(3, 4)", "c(3, 4).flip(1)"),
    case("TripletMarginWithDistanceLoss()", "x(3, 4)", "c(3, 4)", "c(3, 4).flip(1)"),
    case(
        "CTCLoss()",
        "x(6, 2, 4).log_softmax(2)",
        "i(2, 3, below=3) + 1",
        "t([6, 5])",
        "t([3, 2])",
    ),
    case(
        "AdaptiveLogSoftmaxWithLoss(8, 12, [4, 8], div_value=2.0)", "x(5, 8)", "t([1, 5, 9, 0, 11])"
    ),
    # ---- recurrent
    case("RNN(3, 4)", "x(5, 2, 3)"),
    case("RNN(3, 4, 2, nonlinearity='relu', bidirectional=True, batch_first=True)", "x(2, 5, 3)"),
    case("LSTM(3, 4)", "x(5, 2, 3)"),
    case("LSTM(3, 4, 2, bidirectional=True)", "x(5, 2, 3)", "(c(4, 2, 4), c(4, 2, 4))"),
    case("LSTM(3, 4, 2, bias=False, proj_size=2)", "x(5, 2, 3)"),
    case("LSTM(3, 4, batch_first=True)", "x(5, 3)"),
    case("GRU(3, 4, 2, dropout=0.5)", "x(5, 2, 3)", eval=True),
    case("GRU(3, 4, bidirectional=True)", "x(5, 2, 3)", "c(2, 2, 4)"),
    case("LSTM(3, 4, 2, bidirectional=True)", "pack(x(5, 3, 3), [5, 3, 2])", packed=True),
    case("GRU(3, 4)", "pack(x(5, 3, 3), [2, 5, 3])", packed=True),
    case("RNNCell(3, 4)", "x(2, 3)"),
    case("RNNCell(3, 4, nonlinearity='relu', bias=False)", "x(3)"),
    case("LSTMCell(3, 4)", "x(2, 3)", "(c(2, 4), c(2, 4))"),
    case("GRUCell(3, 4)", "x(2, 3)", "c(2, 4)"),
    # ---- attention
    case("MultiheadAttention(8, 2)", "x(4, 3, 8)", "x(5, 3, 8)", "x(5, 3, 8)"),
    case(
        "MultiheadAttention(8, 2, batch_first=True, kdim=6, vdim=5)",
        "x(3, 4, 8)",
        "x(3, 5, 6)",
        "x(3, 5, 5)",
    ),
    case(
        "MultiheadAttention(8, 4, bias=False, add_bias_kv=True)",
        "x(4, 3, 8)",
        "x(5, 3, 8)",
        "x(5, 3, 8)",
    ),
    case(
        "MultiheadAttention(8, 2, add_zero_attn=True)",
        "x(4, 3, 8)",
        "x(5, 3, 8)",
        "x(5, 3, 8)",
        "t([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]).bool()",
    ),
    case("TransformerEncoderLayer(8, 2, 16, dropout=0.0)", "x(4, 3, 8)"),
    case(
        "TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation='gelu', norm_first=True)",
        "x(4, 8)",
    ),
    case(
        "TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)",
        "x(3, 4, 8)",
        "x(3, 5, 8)",
    ),
    case(
        "TransformerEncoder(TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2, norm=LayerNorm(8))",
        "x(4, 3, 8)",
        "Transformer.generate_square_subsequent_mask(4).to(d)",
    ),
    case(
        "TransformerDecoder(TransformerDecoderLayer(8, 2, 16, dropout=0.0), 2)",
        "x(4, 3, 8)",
        "x(5, 3, 8)",
    ),
    case("Transformer(8, 2, 1, 1, 16, dropout=0.0)", "x(4, 3, 8)", "x(5, 3, 8)"),
]


def key(case):
    return " <- ".join((case[0], ", ".join(case[1]))) + (" (eval)" if case[2].get("eval") else "")


def flat(value):
    """The numbers of nested lists, in order."""
    if isinstance(value, list):
        return [x for v in value for x in flat(v)]
    return [float(value)]


def fingerprint(tensor):
    """Shape, the first numbers, and a sum in which every place has a weight of its own."""
    numbers = flat(tensor.detach().tolist())
    weighted = sum(v * (1 + (i * 31 % 17) / 17) for i, v in enumerate(numbers))
    return [list(tensor.shape), numbers[:3], weighted]


def tensors_in(value):
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_in(v)]
    return [value] if hasattr(value, "detach") else []


class World:
    """What the texts of cases may name, for one implementation and dtype."""

    def __init__(self, torch, device="cpu"):
        self.torch, self.device, self.leaves, self.draws = torch, device, [], 0

    def numbers(self, *shape):
        count = 1
        for s in shape:
            count *= s
        self.draws += 1
        first = self.draws * 104729
        values = [((first + i * 7919) % 2003) / 1000 - 1 for i in range(count)]
        made = self.torch.tensor(values, dtype=self.torch.float64).reshape(shape)
        return made.to(self.device)

    def names(self):
        torch = self.torch

        def x(*shape):
            """An input whose gradient is compared."""
            made = self.numbers(*shape).requires_grad_()
            self.leaves.append(made)
            return made

        def i(*shape, below):
            """Indices."""
            count = 1
            for s in shape:
                count *= s
            values = [(k * 5 + 3) % below for k in range(count)]
            return torch.tensor(values).reshape(shape).to(self.device)

        def pack(padded, lengths):
            from importlib import import_module

            rnn = import_module(torch.__name__ + ".nn.utils.rnn")
            return rnn.pack_padded_sequence(padded, lengths, enforce_sorted=False)

        names = {
            name: getattr(torch.nn, name)
            for name in (
                "TransformerEncoderLayer",
                "TransformerDecoderLayer",
                "LayerNorm",
                "Transformer",
            )
        }
        names.update(
            x=x,
            i=i,
            c=self.numbers,
            t=lambda values: torch.tensor(values).to(self.device),
            d=torch.float64,
            pack=pack,
        )
        return names


def build(torch, layer, device="cpu"):
    """The layer with the parameters that seed 0 gives it, and the world it was made in."""
    world = World(torch, device)
    names = world.names()
    name = layer.partition("(")[0]
    names[name] = getattr(torch.nn, name)
    torch.manual_seed(0)
    return eval(layer, names), world, names


def run(torch, case, device="cpu"):
    """Fingerprints of a layer's parameters as made, of its outputs, and of all gradients."""
    text, inputs, options = case
    layer, world, names = build(torch, text, device)
    first = {} if "Lazy" in text else {n: fingerprint(p) for n, p in layer.named_parameters()}
    layer = layer.to(device).double()
    if options.get("eval"):
        layer.eval()
    values = [eval(i, names) for i in inputs]
    values = [v.to(device) if isinstance(v, torch.Tensor) else v for v in values]
    if options.get("copy"):  # an activation may write its input
        values = [v.clone() for v in values]
    result = layer(*values)
    if "Lazy" in text:
        first = {n: [list(p.shape), [], 0.0] for n, p in layer.named_parameters()}
    outs = tensors_in(result)
    grads = {}
    wanted = [o for o in outs if o.is_floating_point() and o.requires_grad]
    if wanted and not options.get("no_grad"):
        total = 0
        for o in wanted:
            n = o.numel()
            weights = torch.tensor([1 + (k * 13 % 11) / 11 for k in range(n)], dtype=torch.float64)
            total = total + (o * weights.reshape(o.shape).to(device)).sum()
        total.backward()
        leaves = {f"input {k}": leaf for k, leaf in enumerate(world.leaves)}
        leaves.update(layer.named_parameters())
        grads = {n: fingerprint(p.grad) for n, p in leaves.items() if p.grad is not None}
    return {
        "repr": repr(layer),
        "parameters": first,
        "outputs": [fingerprint(o) for o in outs],
        "grads": grads,
        "buffers": {n: fingerprint(b) for n, b in layer.named_buffers()},
    }


# Calls of nn.init on a fresh tensor w of this shape, after seed 3.
INITS = [
    ("uniform_(w)", (4, 5)),
    ("uniform_(w, -2.0, 3.0)", (4, 5)),
    ("normal_(w, 1.0, 2.0)", (4, 5)),
    ("normal_(w)", (7, 9)),
    ("trunc_normal_(w, 0.1, 0.5, -0.4, 0.6)", (4, 5)),
    ("constant_(w, 0.3)", (4, 5)),
    ("ones_(w)", (4,)),
    ("zeros_(w)", (4,)),
    ("eye_(w)", (4, 5)),
    ("dirac_(w)", (4, 3, 3, 3)),
    ("dirac_(w, 2)", (4, 2, 3)),
    ("xavier_uniform_(w)", (4, 5)),
    ("xavier_normal_(w, 2.0)", (4, 5, 3)),
    ("kaiming_uniform_(w, a=1, mode='fan_out')", (4, 5, 3)),
    ("kaiming_normal_(w, nonlinearity='relu')", (4, 5)),
    ("orthogonal_(w)", (4, 4)),
    ("orthogonal_(w, 2.0)", (3, 8)),
    ("orthogonal_(w)", (8, 3)),
    ("sparse_(w, 0.5)", (6, 4)),
]


def run_init(torch, call, shape):
    from importlib import import_module

    names = dict(vars(import_module(torch.__name__ + ".nn.init")))
    torch.manual_seed(3)
    w = names["w"] = torch.empty(*shape)
    eval(call, names)
    return fingerprint(w)

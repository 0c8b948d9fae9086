"""multi_head_attention_forward: projections and masks around attention."""

import math
import warnings

import tessera as torch


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask of bools becomes one of numbers that are added: -inf where nothing is attended to."""
    if mask is None:
        return None
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type "
            "for both instead.",
            stacklevel=2,
        )
    if mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))
    return mask


def _none_or_dtype(mask):
    return None if mask is None else mask.dtype


def _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Are the inputs batched?"""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D "
            "query tensor"
        )
    batched = query.dim() == 3
    kind = "batched 3-D" if batched else "unbatched 2-D"
    if key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {query.dim()}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != query.dim() - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or "
            f"{query.dim() - 1}-D but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        if not batched and attn_mask.dim() == 3:
            wanted = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != wanted:
                raise AssertionError(
                    f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}"
                )
    return batched


def _project(query, key, value, packed, separate, bias):
    """Query, key and value through their parts of the weights."""
    from . import functional as F

    if separate is None:
        if key is value and query is key:
            return F.linear(query, packed, bias).chunk(3, -1)
        weights = packed.chunk(3)
    else:
        weights = separate
        width = query.size(-1)
        for weight, given, name in zip(weights, (query, key, value), ("q", "k", "v")):
            if tuple(weight.shape) != (width, given.size(-1)):
                raise AssertionError(
                    f"expecting {name}_proj_weight shape of {(width, given.size(-1))}, but got "
                    f"{weight.shape}"
                )
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(F.linear(given, w, b) for given, w, b in zip((query, key, value), weights, biases))


def _by_head(x, batch, num_heads, head_dim):
    """(length, batch, width) as (batch * heads, length, width of a head)."""
    return x.contiguous().view(x.shape[0], batch * num_heads, head_dim).transpose(0, 1)


def _static(given, name, batch, num_heads, head_dim):
    if given.size(0) != batch * num_heads:
        raise AssertionError(
            f"expecting {name}.size(0) of {batch * num_heads}, but got {given.size(0)}"
        )
    if given.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {given.size(2)}")
    return given


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention with several heads, from (length, batch, width); see nn.MultiheadAttention."""
    from . import functional as F

    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, batch, embed_dim = query.shape
    src_len = key.shape[0]
    key_padding_mask = _canonical_mask(
        key_padding_mask,
        "key_padding_mask",
        _none_or_dtype(attn_mask),
        "attn_mask",
        query.dtype,
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        if key_padding_mask is not None:
            is_causal = False
    if embed_dim != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}"
        )
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                "key's sequence and batch dims "
                f"{key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _project(query, key, value, in_proj_weight, separate, in_proj_bias)

    attn_mask = _checked_attn_mask(attn_mask, tgt_len, src_len, batch * num_heads)
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must be both set or both None")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _widened(F, attn_mask, key_padding_mask)
    q = _by_head(q, batch, num_heads, head_dim)
    k = (
        _by_head(k, batch, num_heads, head_dim)
        if static_k is None
        else _static(static_k, "static_k", batch, num_heads, head_dim)
    )
    v = (
        _by_head(v, batch, num_heads, head_dim)
        if static_v is None
        else _static(static_v, "static_v", batch, num_heads, head_dim)
    )
    if add_zero_attn:
        zeros = torch.zeros((batch * num_heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k = torch.cat([k, zeros], dim=1)
        v = torch.cat([v, zeros], dim=1)
        attn_mask, key_padding_mask = _widened(F, attn_mask, key_padding_mask)
    src_len = k.size(1)
    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (batch, src_len):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, src_len)}, but got "
                f"{key_padding_mask.shape}"
            )
        key_padding_mask = (
            key_padding_mask.view(batch, 1, 1, src_len)
            .expand(-1, num_heads, -1, -1)
            .reshape(batch * num_heads, 1, src_len)
        )
        attn_mask = key_padding_mask if attn_mask is None else attn_mask + key_padding_mask
    if not training:
        dropout_p = 0.0

    if need_weights:
        if is_causal and attn_mask is None:
            raise AssertionError("is_causal is not implemented for need_weights")
        q = q * math.sqrt(1.0 / float(head_dim))
        scores = torch.bmm(q, k.transpose(-2, -1))
        if attn_mask is not None:
            scores = scores + attn_mask
        weights = F.softmax(scores, dim=-1)
        if dropout_p > 0.0:
            weights = F.dropout(weights, p=dropout_p)
        out = torch.bmm(weights, v)
        out = out.transpose(0, 1).contiguous().view(tgt_len * batch, embed_dim)
        out = F.linear(out, out_proj_weight, out_proj_bias).view(tgt_len, batch, -1)
        weights = weights.view(batch, num_heads, tgt_len, src_len)
        if average_attn_weights:
            weights = weights.mean(dim=1)
        return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0))

    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(batch, num_heads, -1, src_len)
    out = F.scaled_dot_product_attention(
        q.view(batch, num_heads, tgt_len, head_dim),
        k.view(batch, num_heads, src_len, head_dim),
        v.view(batch, num_heads, src_len, head_dim),
        attn_mask,
        dropout_p,
        is_causal,
    )
    out = out.permute(2, 0, 1, 3).contiguous().view(batch * tgt_len, embed_dim)
    out = F.linear(out, out_proj_weight, out_proj_bias).view(tgt_len, batch, -1)
    return (out if batched else out.squeeze(1)), None


def _checked_attn_mask(attn_mask, tgt_len, src_len, heads):
    if attn_mask is None:
        return None
    wanted = (tgt_len, src_len) if attn_mask.dim() == 2 else (heads, tgt_len, src_len)
    if tuple(attn_mask.shape) != wanted:
        raise RuntimeError(
            f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be "
            f"{wanted}."
        )
    return attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask


def _widened(F, attn_mask, key_padding_mask):
    """Masks with a column more, for what is appended to the keys."""
    return (
        None if attn_mask is None else F.pad(attn_mask, (0, 1)),
        None if key_padding_mask is None else F.pad(key_padding_mask, (0, 1)),
    )

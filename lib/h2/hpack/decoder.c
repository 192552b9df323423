/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The HPACK decoder (RFC 7541 3, 6). It returns the fields of a header block one by one, with the
 * token of the name and the result of validation.
 */
#include "h2/hpack/hpack_internal.h"

#include "base/compiler.h"

/* RFC 7541 5.1: bits of the prefix of an integer. */
enum {
    PREFIX_INDEXED = 7,
    PREFIX_INSERT = 6,
    PREFIX_UPDATE = 5,
    PREFIX_NO_INDEX = 4,
    PREFIX_STRING = 7
};

#define UPDATES_MAX 2u /* RFC 7541 4.2: the smallest and the final size */

struct nj__hpack_decoder *nj__hpack_decoder_new(struct nj__hpack_shared *shared)
{
    struct nj__hpack_decoder *in = nj_alloc_zero(shared->alloc, sizeof *in);
    if (!in)
        return NULL;
    in->shared = shared;
    in->limit = NJ__HPACK_TABLE_BYTES;
    return in;
}

void nj__hpack_decoder_free(struct nj__hpack_decoder *in)
{
    if (!in)
        return;
    nj_alloc_free(in->shared->alloc, in->store);
    nj_alloc_free(in->shared->alloc, in);
}

void nj__hpack_decode_begin(struct nj__hpack_decoder *in, const uint8_t *data, size_t n_bytes)
{
    nj__hpack_scratch_reset(in->shared);
    in->at = data;
    in->end = data + n_bytes;
    in->n_updates = 0;
    in->field_seen = in->strings_in_use = false;
}

/* RFC 7541 5.1: the octets after a prefix of ones. False: the integer exceeds 2^32 - 1, or is
 * incomplete. */
static __attribute__((noinline)) bool number_rest(struct nj__hpack_decoder *in, uint32_t *v)
{
    uint64_t sum = *v;
    unsigned shift = 0;
    uint8_t octet;
    do {
        if (in->at == in->end || shift > 28)
            return false;
        octet = *in->at++;
        sum += (uint64_t)(octet & 0x7f) << shift;
        shift += 7;
    } while (octet & 0x80);
    *v = (uint32_t)sum;
    return sum <= UINT32_MAX;
}

/* Decode an integer. The caller ensures that one octet remains. */
static bool number(struct nj__hpack_decoder *in, unsigned prefix, uint32_t *out)
{
    uint32_t most = (1u << prefix) - 1;
    *out = *in->at++ & most;
    return nj_likely(*out < most) || number_rest(in, out);
}

static int huffman(struct nj__hpack_decoder *in, uint32_t n_bytes, struct nj_str *out)
{
    uint8_t *to = nj__hpack_scratch_reserve(in->shared, nj__huffman_decoded_max(n_bytes));
    if (!to)
        return NJ__HPACK_NO_MEMORY;
    ptrdiff_t n = nj__huffman_decode(&in->shared->huffman, to, in->at, n_bytes);
    if (n < 0)
        return NJ__HPACK_BROKEN;
    nj__hpack_scratch_commit(in->shared, (size_t)n);
    in->at += n_bytes;
    *out = (struct nj_str){(const char *)to, (uint32_t)n};
    return 0;
}

/* RFC 7541 5.2. A literal without Huffman code is not copied. */
static int string(struct nj__hpack_decoder *in, struct nj_str *out)
{
    uint32_t n;
    if (in->at == in->end)
        return NJ__HPACK_BROKEN;
    bool coded = *in->at & 0x80;
    if (!number(in, PREFIX_STRING, &n) || n > (size_t)(in->end - in->at))
        return NJ__HPACK_BROKEN;
    if (coded)
        return huffman(in, n, out);
    *out = (struct nj_str){(const char *)in->at, n};
    in->at += n;
    return 0;
}

/* The entry at an index of the dynamic table; the newest has index 0. */
static const struct nj__hpack_entry *entry_at(struct nj__hpack_decoder *in, uint32_t index)
{
    if (index >= nj__hpack_n_entries(in))
        return NULL;
    in->strings_in_use = true;
    return nj__hpack_entry_by_number(in->store, in->next - 1u - index);
}

static const char *entry_name(const struct nj__hpack_decoder *in, const struct nj__hpack_entry *e,
                              struct nj__hpack_field *field)
{
    const char *p = (const char *)in->store + e->at;
    if (e->name_index) {
        field->name = nj__hpack_static[e->name_index].name;
        return p;
    }
    field->name = (struct nj_str){p, e->n_name};
    return p + e->n_name;
}

/* RFC 7541 6.1. */
static int indexed(struct nj__hpack_decoder *in, struct nj__hpack_field *field)
{
    uint32_t index;
    if (!number(in, PREFIX_INDEXED, &index) || index == 0)
        return NJ__HPACK_BROKEN;
    if (index <= NJ__HPACK_N_STATIC) {
        *field = nj__hpack_static[index];
        return 1;
    }
    const struct nj__hpack_entry *e = entry_at(in, index - NJ__HPACK_N_STATIC - 1);
    if (!e)
        return NJ__HPACK_BROKEN;
    field->value = (struct nj_str){entry_name(in, e, field), e->n_value};
    field->token = e->token_flags & NJ__HPACK_TOKEN_MASK;
    field->malformed = e->token_flags & NJ__HPACK_MALFORMED;
    return 1;
}

/* The name of a literal by its index. */
static int name_by_index(struct nj__hpack_decoder *in, uint32_t index,
                         struct nj__hpack_field *field, uint8_t *name_index, uint8_t *token_flags)
{
    if (index <= NJ__HPACK_N_STATIC) {
        field->name = nj__hpack_static[index].name;
        *name_index = (uint8_t)index;
        *token_flags = nj__hpack_static[index].token;
        return 0;
    }
    const struct nj__hpack_entry *e = entry_at(in, index - NJ__HPACK_N_STATIC - 1);
    if (!e)
        return NJ__HPACK_BROKEN;
    entry_name(in, e, field);
    *name_index = e->name_index;
    *token_flags = e->token_flags & (NJ__HPACK_TOKEN_MASK | NJ__HPACK_NAME_MALFORMED);
    return 0;
}

static int name_as_string(struct nj__hpack_decoder *in, struct nj__hpack_field *field,
                          uint8_t *token_flags)
{
    int rv = string(in, &field->name);
    if (rv < 0)
        return rv;
    *token_flags = nj__hpack_token_of(field->name);
    bool known = *token_flags != NJ__TOKEN_OTHER && *token_flags != NJ__TOKEN_PSEUDO_OTHER;
    if (!known && !nj__hpack_is_name_valid(field->name))
        *token_flags |= NJ__HPACK_NAME_MALFORMED;
    return 0;
}

/* RFC 7541 6.2. Not inlined, so decoding an indexed field saves fewer registers. */
static __attribute__((noinline)) int literal(struct nj__hpack_decoder *in, unsigned prefix,
                                             struct nj__hpack_field *field)
{
    uint32_t index;
    uint8_t name_index = 0, token_flags;
    if (!number(in, prefix, &index))
        return NJ__HPACK_BROKEN;
    int rv = index ? name_by_index(in, index, field, &name_index, &token_flags)
                   : name_as_string(in, field, &token_flags);
    if (rv == 0)
        rv = string(in, &field->value);
    if (rv < 0)
        return rv;
    if (token_flags & NJ__HPACK_NAME_MALFORMED ||
        !nj__hpack_is_value_valid((enum nj__token)(token_flags & NJ__HPACK_TOKEN_MASK),
                                  field->value))
        token_flags |= NJ__HPACK_MALFORMED;
    field->token = token_flags & NJ__HPACK_TOKEN_MASK;
    field->malformed = token_flags & NJ__HPACK_MALFORMED;
    if (prefix == PREFIX_INSERT && !nj__hpack_insert(in, field, name_index, token_flags))
        return NJ__HPACK_NO_MEMORY;
    return 1;
}

/* RFC 7541 6.3, 4.2: before the first field only. */
static __attribute__((noinline)) bool update(struct nj__hpack_decoder *in)
{
    uint32_t limit;
    if (in->field_seen || in->n_updates++ == UPDATES_MAX || !number(in, PREFIX_UPDATE, &limit) ||
        limit > NJ__HPACK_TABLE_BYTES)
        return false;
    in->limit = (uint16_t)limit;
    nj__hpack_evict(in, limit);
    if (limit == 0) { /* no decoded string refers to the store yet */
        nj_alloc_free(in->shared->alloc, in->store);
        in->store = NULL;
        in->first = in->next = 0;
    }
    return true;
}

int nj__hpack_decode_next(struct nj__hpack_decoder *in, struct nj__hpack_field *field)
{
    while (in->at != in->end) {
        uint8_t octet = *in->at;
        if (nj_likely(octet & 0x80)) {
            in->field_seen = true;
            return indexed(in, field);
        }
        if ((octet & 0xe0) != 0x20) {
            in->field_seen = true;
            return literal(in, octet & 0x40 ? PREFIX_INSERT : PREFIX_NO_INDEX, field);
        }
        if (!update(in))
            return NJ__HPACK_BROKEN;
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Validates the fields that handlers add to a response and packs them into one block. Names and
 * values follow RFC 9113 8.2.1. */
#include <string.h>

#include "base/limits.h"
#include "http/handlers/exchange_state.h"
#include "http/proto/field_value.h"

struct lengths {
    uint16_t name, value;
};

/* tchar of RFC 9110 5.6.2 in lower case (RFC 9113 8.2.1). */
static bool is_name(const char *name, size_t n)
{
    return n > 0 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == n;
}

/* Connection-specific fields, RFC 9113 8.2.2, RFC 9110 7.6.1. Transfer-Encoding would contradict
 * the framing (RFC 9112 6.1). */
static bool is_connection_specific(const char *name)
{
    static const char *const names[] = {"connection",        "keep-alive", "proxy-connection",
                                        "transfer-encoding", "upgrade",    "te"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static struct nj_block *make_room(struct nj__resp_fields *f, struct nj_block_pool *b,
                                  uint32_t n_bytes)
{
    struct nj_block *old = f->block;
    if (old && old->n_room - old->n_bytes >= n_bytes)
        return old;
    uint32_t n = old ? 2 * old->n_bytes + n_bytes : n_bytes;
    struct nj_block *grown = b ? nj_block_pool_take(b, n) : nj_block_malloc(n < 512 ? 512 : n);
    if (!grown)
        return NULL;
    if (old) {
        memcpy(grown->bytes, old->bytes, old->n_bytes);
        grown->n_bytes = old->n_bytes;
        nj_ref_put(&old->ref);
    }
    f->block = grown;
    return grown;
}

/* A value with CR LF would end the line (RFC 9112 5.2, 11.1). */
int nj__resp_fields_add(struct nj__resp_fields *f, struct nj_block_pool *b, const char *name,
                        const char *value)
{
    size_t n_name = strlen(name), n_value = strlen(value);

    if (!is_name(name, n_name) || !nj_field_value_is_valid(value) || is_connection_specific(name))
        return NJ_ERR_INVALID;
    if (f->n == NJ_RESPONSE_FIELDS_MAX || n_name + n_value > NJ_RESPONSE_HEAD_BYTES - f->n_bytes)
        return NJ_ERR_TOO_LARGE;
    struct lengths len = {(uint16_t)n_name, (uint16_t)n_value};
    struct nj_block *block = make_room(f, b, (uint32_t)(sizeof len + n_name + n_value));
    if (!block)
        return NJ_ERR_MEMORY;
    uint8_t *to = block->bytes + block->n_bytes;
    memcpy(to, &len, sizeof len);
    memcpy(to + sizeof len, name, n_name);
    memcpy(to + sizeof len + n_name, value, n_value);
    block->n_bytes += (uint32_t)(sizeof len + n_name + n_value);
    f->n++;
    f->n_bytes += (uint32_t)(n_name + n_value);
    return 0;
}

uint32_t nj__resp_fields_views(const struct nj__resp_fields *f, struct nj_field *out)
{
    const char *at = f->block ? (const char *)f->block->bytes : NULL;

    for (uint32_t i = 0; i < f->n; i++) {
        struct lengths len;
        memcpy(&len, at, sizeof len);
        at += sizeof len;
        out[i].name = (struct nj_str){at, len.name};
        out[i].value = (struct nj_str){at + len.name, len.value};
        at += len.name + len.value;
    }
    return f->n;
}

void nj__resp_fields_clear(struct nj__resp_fields *f)
{
    if (f->block)
        nj_ref_put(&f->block->ref);
    *f = (struct nj__resp_fields){0};
}

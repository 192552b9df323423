/* SPDX-License-Identifier: BSD-3-Clause */
/* A header block while it comes: what is kept of it, and the limits it is held to. */
#include "h2/h2_internal.h"

#include <string.h>

static void value_drop(nghttp2_rcbuf **value)
{
    if (*value)
        nghttp2_rcbuf_decref(*value);
    *value = NULL;
}

void nj__h2_head_clear(struct nj__h2_head *head)
{
    value_drop(&head->method);
    value_drop(&head->scheme);
    value_drop(&head->authority);
    value_drop(&head->path);
    value_drop(&head->host);
}

int nj__h2_on_begin_headers(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
    struct nj_h2 *h = user;
    nj__h2_head_clear(&h->head);
    h->head.n_bytes = h->head.n_fields = 0;
    h->head.over = false;
    struct nj_h2_stream *st = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
    if (st) { /* trailers */
        h->head.n_bytes = st->head_bytes;
        h->head.n_fields = st->head_fields;
    }
    return 0;
}

static bool name_is(nghttp2_vec name, const char *literal, size_t n)
{
    return name.len == n && memcmp(name.base, literal, n) == 0;
}

/* Where a field's value is kept, or NULL for the fields nobody asks for. */
static nghttp2_rcbuf **slot_of(struct nj__h2_head *head, nghttp2_rcbuf *name)
{
    nghttp2_vec v = nghttp2_rcbuf_get_buf(name);
    if (name_is(v, ":method", 7))
        return &head->method;
    if (name_is(v, ":scheme", 7))
        return &head->scheme;
    if (name_is(v, ":authority", 10))
        return &head->authority;
    if (name_is(v, ":path", 5))
        return &head->path;
    if (name_is(v, "host", 4))
        return &head->host;
    return NULL;
}

int nj__h2_on_header(nghttp2_session *s, const nghttp2_frame *f, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *user)
{
    struct nj_h2 *h = user;
    struct nj__h2_head *head = &h->head;
    const struct nj_h2_limits *max = &h->core->limits;
    head->n_fields++;
    /* RFC 9113 6.5.2: name, value and 32 for each field. */
    head->n_bytes += nghttp2_rcbuf_get_buf(name).len + nghttp2_rcbuf_get_buf(value).len + 32;
    if (head->n_bytes > (size_t)max->header_bytes_max * NJ__H2_HEADER_HARD ||
        head->n_fields > (size_t)max->header_fields_max * NJ__H2_HEADER_HARD) {
        nj__h2_end(h, NJ__H2_END_ABUSE);
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (head->n_bytes > max->header_bytes_max || head->n_fields > max->header_fields_max) {
        head->over = true;
        nj__h2_head_clear(head);
    }
    if (head->over || f->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    nghttp2_rcbuf **slot = slot_of(head, name);
    if (slot && !*slot) {
        *slot = value;
        nghttp2_rcbuf_incref(value);
    }
    return 0;
}

/* A field that RFC 9113 8.2.1 forbids makes the message malformed; nghttp2 would skip it. */
int nj__h2_on_invalid_header(nghttp2_session *s, const nghttp2_frame *f, nghttp2_rcbuf *name,
                             nghttp2_rcbuf *value, uint8_t flags, void *user)
{
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

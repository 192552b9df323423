/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header block while it comes: what is kept of it, and the limits it is held to.
 *
 * What is kept are references to nghttp2's buffers. They are dropped as soon as the request was
 * shown, and so is the table of fields that limits.keep_fields asks for: a connection at rest holds
 * nothing of it.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "base/attr.h"

/* Fields that the first table of a block has room for; it doubles when they are more. */
#define KEPT_AT_FIRST 16u

static void value_drop(nghttp2_rcbuf **value)
{
    if (*value)
        nghttp2_rcbuf_decref(*value);
    *value = NULL;
}

static void kept_clear(struct nj__h2_head *head)
{
    for (uint32_t i = 0; i < 2 * head->n_kept; i++)
        nghttp2_rcbuf_decref(head->kept_refs[i]);
    nj__h2_alloc_free(head->alloc, head->kept);
    head->kept = NULL;
    head->n_kept = head->kept_room = 0;
}

void nj__h2_head_clear(struct nj__h2_head *head)
{
    value_drop(&head->method);
    value_drop(&head->scheme);
    value_drop(&head->authority);
    value_drop(&head->path);
    value_drop(&head->host);
    if (nj_unlikely(head->kept != NULL))
        kept_clear(head);
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

static struct nj_str str_of(nghttp2_rcbuf *value)
{
    if (!value)
        return NJ_STR("");
    nghttp2_vec v = nghttp2_rcbuf_get_buf(value);
    return (struct nj_str){(const char *)v.base, (uint32_t)v.len};
}

/* A table with twice the room: the fields, then the references that keep them. It ends at
 * limits.header_fields_max, beyond which nothing is kept. */
static bool kept_grow(struct nj__h2_head *head)
{
    uint32_t room = head->kept_room ? 2 * head->kept_room : KEPT_AT_FIRST;
    struct nj_field *kept =
        nj__h2_alloc(head->alloc, room * (sizeof *kept + 2 * sizeof *head->kept_refs));
    if (!kept)
        return false;
    nghttp2_rcbuf **refs = (nghttp2_rcbuf **)(kept + room);
    if (head->kept) {
        memcpy(kept, head->kept, head->n_kept * sizeof *kept);
        memcpy(refs, head->kept_refs, 2 * head->n_kept * sizeof(*refs));
        nj__h2_alloc_free(head->alloc, head->kept);
    }
    head->kept = kept;
    head->kept_refs = refs;
    head->kept_room = room;
    return true;
}

static bool keep(struct nj__h2_head *head, nghttp2_rcbuf *name, nghttp2_rcbuf *value)
{
    if (head->n_kept == head->kept_room && !kept_grow(head))
        return false;
    uint32_t i = head->n_kept++;
    nghttp2_rcbuf_incref(name);
    nghttp2_rcbuf_incref(value);
    head->kept[i] = (struct nj_field){str_of(name), str_of(value)};
    head->kept_refs[2 * (size_t)i] = name;
    head->kept_refs[2 * (size_t)i + 1] = value;
    return true;
}

void nj__h2_head_show(const struct nj__h2_head *head, bool ends, struct nj_h2_request *req)
{
    *req = (struct nj_h2_request){
        .method = str_of(head->method),
        .scheme = str_of(head->scheme),
        /* RFC 9113 8.3.1: without :authority the host field stands in. */
        .authority = str_of(head->authority ? head->authority : head->host),
        .path = str_of(head->path),
        .fields = head->kept,
        .n_fields = head->n_kept,
        .ends = ends,
    };
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
    if (max->keep_fields && *nghttp2_rcbuf_get_buf(name).base != ':' && !keep(head, name, value)) {
        nj__h2_check_memory(h);
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
}

/* A field that RFC 9113 8.2.1 forbids makes the message malformed; nghttp2 would skip it. */
int nj__h2_on_invalid_header(nghttp2_session *s, const nghttp2_frame *f, nghttp2_rcbuf *name,
                             nghttp2_rcbuf *value, uint8_t flags, void *user)
{
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

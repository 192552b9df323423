/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order of DATA between streams (RFC 9218 10). More urgent responses precede others. At equal
 * urgency, non-incremental responses come first, in the order of their ids; incremental responses
 * share the connection by round robin.
 *
 * Without a priority from the client, small responses are non-incremental (RFC 9218 4.2) and large
 * ones incremental: otherwise a second download would stall until the first ends.
 *
 * Insertion searches the ready list from its end, where most new responses belong. The list has at
 * most concurrent_streams_max entries.
 */
#include "h2/h2_internal.h"

/* A response is large beyond this, or if its length is unknown. At 10 Mbit/s this many bytes delay
 * later responses by a fifth of a second; resources of web pages are mostly smaller. */
#define LARGE_BYTES (256u * 1024u)

static struct nj_h2_stream *stream_of(struct nj_list *n)
{
    return nj_container_of(n, struct nj_h2_stream, queue);
}

/* `a`, an entry of the list, precedes `b`, which is to be inserted. */
static bool goes_before(const struct nj_h2_stream *a, const struct nj_h2_stream *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return b->priority & NJ__H2_INCREMENTAL || a->id < b->id;
}

static void insert_behind(struct nj_list *n, struct nj_list *what)
{
    what->prev = n;
    what->next = n->next;
    n->next->prev = what;
    n->next = what;
}

void nj__h2_schedule(struct nj_h2_stream *st)
{
    struct nj_list *all = &st->h->ready, *n = all->prev;

    if (!st->body || !st->responded || st->deferred || st->reset || st->window <= 0 ||
        nj_list_linked(&st->queue))
        return;
    while (n != all && !goes_before(stream_of(n), st))
        n = n->prev;
    insert_behind(n, &st->queue);
}

void nj__h2_reschedule(struct nj_h2_stream *st)
{
    struct nj_list *all = &st->h->ready, *n = &st->queue;

    if (!(st->priority & NJ__H2_INCREMENTAL))
        return;
    while (n->next != all && stream_of(n->next)->priority == st->priority)
        n = n->next;
    if (n == &st->queue)
        return;
    nj_list_del(&st->queue);
    insert_behind(n, &st->queue);
}

/* ---- RFC 9218 7.1 ---- */

/* Remember the priority of a stream that is not open yet. */
static void remember_early(struct nj_h2 *h, uint32_t id, uint8_t priority)
{
    uint32_t i = 0;

    while (i < NJ__H2_EARLY_PRIORITIES && h->early_id[i] != id)
        i++;
    if (i == NJ__H2_EARLY_PRIORITIES) {
        i = h->n_early % NJ__H2_EARLY_PRIORITIES;
        h->n_early = (uint8_t)(i + 1);
    }
    h->early_id[i] = id;
    h->early_priority[i] = priority;
}

static void set_priority(struct nj_h2_stream *st, uint8_t priority)
{
    st->priority = priority;
    st->has_priority = true;
    if (!st->body || st->end_queued || st->reset || !nj_list_linked(&st->queue))
        return;
    nj_list_del(&st->queue);
    nj__h2_schedule(st);
}

void nj__h2_priority_update(struct nj_h2 *h, const uint8_t *p, uint32_t n_bytes)
{
    uint32_t id = nj_get_be32(p) & NJ__H2_ID_MAX;
    const struct nj_str value = {(const char *)p + 4, n_bytes - 4};

    if (id % 2 == 0) { /* a push stream, which can't exist */
        nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
        return;
    }
    uint8_t priority = nj__h2_priority_parse(value, NJ__H2_PRIORITY_DEFAULT);
    struct nj_h2_stream *st = nj__h2_find_stream(h, id);
    if (!st) {
        if (id > h->id_high)
            remember_early(h, id, priority);
        return;
    }
    set_priority(st, priority);
}

void nj_h2_prioritize(struct nj_h2_stream *st, uint8_t urgency, bool incremental)
{
    set_priority(st, (uint8_t)(NJ__H2_URGENCY(urgency) | (incremental ? NJ__H2_INCREMENTAL : 0)));
}

void nj__h2_priority_set_initial(struct nj_h2_stream *st, const struct nj__h2_head *head)
{
    const struct nj_h2 *h = st->h;

    st->priority = head->priority;
    st->has_priority = head->has_priority;
    for (uint32_t i = 0; nj_unlikely(h->n_early > 0) && i < NJ__H2_EARLY_PRIORITIES; i++) {
        if (h->early_id[i] != (uint32_t)st->id)
            continue;
        st->priority = h->early_priority[i];
        st->has_priority = true;
    }
}

void nj__h2_priority_by_size(struct nj_h2_stream *st, uint64_t n_bytes)
{
    if (n_bytes > LARGE_BYTES && !st->has_priority)
        st->priority |= NJ__H2_INCREMENTAL;
}

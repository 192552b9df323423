/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipe.h"

#include <stdlib.h>

#include "base/big_endian.h"

#define ETH_BYTES    14u
#define TCP_FLAG_SYN 0x02u

/* --- parsing -------------------------------------------------------------------------------- */

struct segment {
    bool is_tcp, syn;
    uint32_t seq, n_data;
};

/* Parses the TCP header. Takes the number of data bytes from the length in the IP header, because
 * short frames are padded. IPv6 with extension headers does not count as TCP. */
static struct segment parse(const uint8_t *f, uint32_t n)
{
    struct segment s = {0};
    uint32_t type = n >= ETH_BYTES + 40 ? nj_get_be16(f + 12) : 0, at, end;

    if (type == 0x0800 && f[23] == 6) {
        at = ETH_BYTES + (f[14] & 15u) * 4;
        end = ETH_BYTES + nj_get_be16(f + 16);
    } else if (type == 0x86dd && f[20] == 6) {
        at = ETH_BYTES + 40;
        end = at + nj_get_be16(f + 18);
    } else {
        return s;
    }
    if (end > n || at + 20 > end)
        return s;
    uint32_t n_head = (f[at + 12] >> 4) * 4u;
    if (n_head < 20 || at + n_head > end)
        return s;
    s.is_tcp = true;
    s.syn = (f[at + 13] & TCP_FLAG_SYN) != 0;
    s.seq = nj_get_be32(f + at + 4);
    s.n_data = end - at - n_head;
    return s;
}

/* Counts data. Returns the number of the packet among packets with new data, from 1; 0: no new
 * data. */
static uint64_t count_data(struct nj_pipe *p, const struct segment *s)
{
    if (s->is_tcp && s->syn) {
        p->seq_known = true;
        p->seq_high = s->seq + 1;
    }
    if (!s->n_data)
        return 0;
    p->stats.data++;
    uint32_t end = s->seq + s->syn + s->n_data;
    if (!p->seq_known) {
        p->seq_known = true;
        p->seq_high = s->seq;
    }
    if ((int32_t)(end - p->seq_high) <= 0)
        return 0;
    p->stats.new_data_bytes += end - p->seq_high;
    p->seq_high = end;
    return ++p->stats.new_data;
}

/* --- frames, and the heap of frames in flight ----------------------------------------------- */

static bool before(const struct nj_pipe_frame *a, const struct nj_pipe_frame *b)
{
    return a->due != b->due ? a->due < b->due : a->number < b->number;
}

static void swap(struct nj_pipe *p, uint32_t i, uint32_t j)
{
    struct nj_pipe_frame *frame = p->heap[i];
    p->heap[i] = p->heap[j];
    p->heap[j] = frame;
}

static void push(struct nj_pipe *p, struct nj_pipe_frame *frame)
{
    uint32_t i = p->n_heap++;

    p->heap[i] = frame;
    for (; i > 0 && before(p->heap[i], p->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(p, i, (i - 1) / 2);
    if (p->n_heap > p->stats.frames_max)
        p->stats.frames_max = p->n_heap;
}

static struct nj_pipe_frame *pop(struct nj_pipe *p)
{
    struct nj_pipe_frame *first = p->heap[0];

    p->heap[0] = p->heap[--p->n_heap];
    for (uint32_t i = 0, least;; i = least) {
        least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < p->n_heap; child++)
            if (before(p->heap[child], p->heap[least]))
                least = child;
        if (least == i)
            return first;
        swap(p, i, least);
    }
}

bool nj_pipe_init(struct nj_pipe *p, const struct nj_pipe_spec *spec, uint64_t seed)
{
    memset(p, 0, sizeof *p);
    p->spec = *spec;
    nj_prng_init(&p->for_data, seed);
    nj_prng_init(&p->for_other, ~seed);
    nj_prng_init(&p->for_bursts, seed ^ ~seed << 32);
    p->frames = calloc(NJ_PIPE_FRAMES_MAX, sizeof *p->frames);
    for (uint32_t i = 0; p->frames && i < NJ_PIPE_FRAMES_MAX; i++)
        nj_pipe_done(p, &p->frames[i]);
    return p->frames != NULL;
}

void nj_pipe_fini(struct nj_pipe *p)
{
    free(p->frames);
    p->frames = NULL;
}

void nj_pipe_done(struct nj_pipe *p, struct nj_pipe_frame *frame)
{
    frame->next_free = p->free_list;
    p->free_list = frame;
}

/* --- loss, reordering, duplication ---------------------------------------------------------- */

struct effects {
    bool lost, picked, reordered, duplicated;
};

static bool chance(uint64_t drawn, uint64_t of)
{
    return (uint32_t)drawn < of;
}

static bool is_picked(const struct nj_pipe *p)
{
    for (uint32_t i = 0; i < p->spec.n_picked; i++)
        if (p->spec.picked[i] == p->stats.data)
            return true;
    return false;
}

/* Draws the same number of random numbers for each packet, independent of the spec and of the
 * results. So loss, reordering and duplication of the k-th packet are the same in each run with
 * this seed. */
static struct effects draw(struct nj_pipe *p, bool is_data)
{
    struct nj_prng *from = is_data ? &p->for_data : &p->for_other;
    uint64_t loss = nj_prng_next(from), burst = nj_prng_next(from), more = nj_prng_next(from);
    const struct nj_pipe_spec *s = &p->spec;
    struct effects effects = {.picked = is_data && is_picked(p)};

    if (!is_data && !s->loss_of_all)
        return effects;
    if (!p->burst_left && chance(burst, s->burst)) {
        p->burst_left = 1;
        while (p->burst_left < NJ_PIPE_BURST_MAX && s->burst_mean > 1 &&
               (uint32_t)nj_prng_next(&p->for_bursts) > UINT32_MAX / s->burst_mean)
            p->burst_left++;
    }
    effects.lost = chance(loss, s->loss) || p->burst_left > 0;
    p->burst_left -= p->burst_left > 0;
    effects.reordered = chance(more, s->reorder);
    effects.duplicated = chance(more >> 32, s->duplicate);
    return effects;
}

static void put(struct nj_pipe *p, const void *bytes, uint32_t n_bytes, nj_ns due,
                uint64_t new_index)
{
    struct nj_pipe_frame *frame = p->free_list;

    if (!frame || n_bytes > sizeof frame->bytes) {
        p->stats.drop_overrun++;
        return;
    }
    p->free_list = frame->next_free;
    frame->due = due;
    frame->number = p->n_numbered++;
    frame->new_index = new_index;
    frame->n_bytes = n_bytes;
    memcpy(frame->bytes, bytes, n_bytes);
    push(p, frame);
}

/* Returns when the last bit leaves. NJ_NEVER: the queue has no room. */
static nj_ns serialise(struct nj_pipe *p, uint32_t n_bytes, nj_ns at)
{
    if (!p->spec.rate_bps)
        return at;
    nj_ns start = p->free_at > at ? p->free_at : at;
    uint64_t waiting = (uint64_t)((double)(start - at) * (double)p->spec.rate_bps / 8e9);
    if (waiting > p->spec.queue_bytes)
        return NJ_NEVER;
    if (waiting > p->stats.queue_bytes_max)
        p->stats.queue_bytes_max = waiting;
    p->free_at = start + n_bytes * 8ull * NJ_SEC / p->spec.rate_bps;
    return p->free_at;
}

void nj_pipe_offer(struct nj_pipe *p, const void *bytes, uint32_t n_bytes, nj_ns at)
{
    struct segment segment = parse(bytes, n_bytes);
    uint64_t new_index = count_data(p, &segment);
    struct effects effects = draw(p, segment.n_data > 0);
    nj_ns sent = serialise(p, n_bytes, at);

    p->stats.offered++;
    p->stats.offered_bytes += n_bytes;
    if (sent == NJ_NEVER) {
        p->stats.drop_queue++;
    } else if (effects.picked) {
        p->stats.drop_picked++;
    } else if (effects.lost) {
        p->stats.drop_loss++;
    } else {
        p->stats.reordered += effects.reordered;
        p->stats.duplicated += effects.duplicated;
        nj_ns due = sent + p->spec.delay + (effects.reordered ? p->spec.reorder_by : 0);
        put(p, bytes, n_bytes, due, new_index);
        if (effects.duplicated)
            put(p, bytes, n_bytes, due, 0);
    }
}

/* --- departure ------------------------------------------------------------------------------ */

nj_ns nj_pipe_due(const struct nj_pipe *p)
{
    return p->n_heap ? p->heap[0]->due : NJ_NEVER;
}

/*
 * Whether the frame is one of the last of its transfer. This is decided at departure, not at
 * arrival: by then all frames that arrived within the link's delay after it are known, so the
 * decision needs no knowledge of the sender's segmentation.
 */
static bool is_tail(const struct nj_pipe *p, const struct nj_pipe_frame *frame)
{
    return p->spec.tail && frame->new_index && p->stats.drop_tail < p->spec.tail &&
           p->stats.new_data_bytes >= p->spec.tail_after &&
           p->stats.new_data - frame->new_index < p->spec.tail;
}

struct nj_pipe_frame *nj_pipe_take(struct nj_pipe *p, nj_ns now)
{
    while (p->n_heap && p->heap[0]->due <= now) {
        struct nj_pipe_frame *frame = pop(p);
        if (!is_tail(p, frame)) {
            p->stats.forwarded++;
            p->stats.forwarded_bytes += frame->n_bytes;
            return frame;
        }
        if (p->stats.drop_tail++ == 0)
            p->stats.tail_first = frame->new_index;
        p->stats.tail_last = frame->new_index;
        nj_pipe_done(p, frame);
    }
    return NULL;
}

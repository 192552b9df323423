/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of an emulated link, as a machine: frames and time in, frames and time out.
 *
 * A frame waits for the one before it to be serialised (rate), in a drop-tail queue that is bounded
 * in bytes; may then be lost on the wire; arrives `delay` after its last bit left. What is lost at
 * random has used its share of the rate, as on a real wire. The fate of the k-th packet with TCP
 * data depends on the seed and k only, so two senders meet the same losses as long as they send the
 * same number of packets.
 */
#ifndef NJ_PERF_LINK_PIPE_H
#define NJ_PERF_LINK_PIPE_H

#include "base/prng.h"
#include "base/types.h"

#define NJ_PIPE_FRAME_MAX 1600u /* an MTU of 1500 with all its tags */
#define NJ_PIPE_FRAMES_MAX                                                                         \
    16384u /* on the way at once: 24 MB, 100 Mbit/s for almost two seconds                         \
            */
#define NJ_PIPE_PICKED_MAX 16u
#define NJ_PIPE_ALWAYS     (1ull << 32) /* a chance of one */
#define NJ_PIPE_TAIL_MAX   64u
#define NJ_PIPE_BURST_MAX  1000u /* packets lost in one burst */

/* Chances are in units of 2^-32. Everything 0: a wire that does nothing to a frame. */
struct nj_pipe_spec {
    uint64_t rate_bps; /* bits of Ethernet frame per second; 0: no serialisation, no queue */
    nj_ns delay;
    uint64_t queue_bytes; /* beyond the frame being sent */
    uint64_t loss, burst, reorder, duplicate;
    uint32_t burst_mean; /* packets in a burst of loss, geometrically distributed */
    nj_ns reorder_by;    /* how much longer a reordered frame is under way */
    bool loss_of_all;    /* else only packets with TCP data are lost, reordered, duplicated */
    uint32_t n_picked, picked[NJ_PIPE_PICKED_MAX]; /* data packets to drop, counted from 1 */
    uint32_t tail;       /* of the transfer, drop this many last packets */
    uint64_t tail_after; /* a transfer is complete once this many bytes of TCP data were seen */
};

struct nj_pipe_stats {
    uint64_t offered, offered_bytes, data, new_data, new_data_bytes, forwarded, forwarded_bytes;
    uint64_t drop_queue, drop_loss, drop_picked, drop_tail, drop_overrun, reordered, duplicated;
    uint64_t queue_bytes_max, frames_max;
    uint64_t tail_first, tail_last; /* which new data packets were dropped as tail, from 1 */
};

struct nj_pipe_frame {
    nj_ns due;
    uint64_t number;    /* in order of departure among equal due */
    uint64_t new_index; /* counts packets with new TCP data from 1; 0: not one */
    uint32_t n_bytes;
    struct nj_pipe_frame *next_free;
    uint8_t bytes[NJ_PIPE_FRAME_MAX];
};

struct nj_pipe {
    struct nj_pipe_spec spec;
    struct nj_pipe_stats stats;
    struct nj_prng for_data, for_other, for_bursts;
    nj_ns free_at; /* when the serialiser is done with everything it accepted */
    uint32_t burst_left;
    bool seq_known;
    uint32_t seq_high; /* one beyond the highest TCP data seen */
    uint64_t n_numbered;
    uint32_t n_heap;
    struct nj_pipe_frame *heap[NJ_PIPE_FRAMES_MAX], *frames, *free_list;
};

/* False when there is no memory. */
bool nj_pipe_init(struct nj_pipe *p, const struct nj_pipe_spec *spec, uint64_t seed);
void nj_pipe_fini(struct nj_pipe *p);

/* A frame that arrived at `at`; the bytes are copied. Calls come in order of `at`. */
void nj_pipe_offer(struct nj_pipe *p, const void *bytes, uint32_t n_bytes, nj_ns at);

/* When the next frame is to leave; NJ_NEVER when nothing is under way. */
nj_ns nj_pipe_due(const struct nj_pipe *p);

/* The next frame that is due by `now`, or NULL. The caller gives it back with nj_pipe_done(). */
struct nj_pipe_frame *nj_pipe_take(struct nj_pipe *p, nj_ns now);
void nj_pipe_done(struct nj_pipe *p, struct nj_pipe_frame *frame);

/* "rate=50M,delay=10ms,queue=64K,loss=0.01,burst=0.001:5,reorder=0.01:2ms,dup=0.001,drop=3+7,
 * tail=2:16384,of=all" into a spec. Returns NULL, or the item that is wrong. */
const char *nj_pipe_parse(struct nj_pipe_spec *spec, const char *text);

#endif

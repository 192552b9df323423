/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model of one direction of a link. The time is an argument.
 *
 * A frame waits in a drop-tail queue, bounded in bytes, until the frame before it is serialised
 * (rate). It may then be lost. Otherwise it arrives `delay` after its last bit has left. A randomly
 * lost frame has used its share of the rate, as on a real wire. Loss, reordering and
 * duplication of the k-th packet with TCP data depend on the seed and k only. So two senders have
 * the same losses as long as they send the same number of packets.
 */
#pragma once

#include "base/prng.h"
#include "base/types.h"

#define NJ_PIPE_FRAME_MAX  1600u  /* an MTU of 1500, with VLAN tags */
#define NJ_PIPE_FRAMES_MAX 16384u /* in flight: 24 MB, almost two seconds of 100 Mbit/s */
#define NJ_PIPE_PICKED_MAX 16u
#define NJ_PIPE_ALWAYS     (1ull << 32) /* a probability of 1 */
#define NJ_PIPE_TAIL_MAX   64u
#define NJ_PIPE_BURST_MAX  1000u /* packets lost in one burst */

/* Probabilities are in units of 2^-32. All 0: the link passes frames on without a change or a
 * delay. */
struct nj_pipe_spec {
    uint64_t rate_bps; /* bits of Ethernet frame per second; 0: no serialisation, no queue */
    nj_ns delay;
    uint64_t queue_bytes; /* without the frame that is being sent */
    uint64_t loss, burst, reorder, duplicate;
    uint32_t burst_mean; /* mean number of packets in a burst of loss; geometric distribution */
    nj_ns reorder_by;    /* additional delay of a reordered frame */
    bool loss_of_all;    /* else only packets with TCP data are lost, reordered, duplicated */
    uint32_t n_picked, picked[NJ_PIPE_PICKED_MAX]; /* data packets to drop, counted from 1 */
    uint32_t tail;       /* number of the last packets of the transfer to drop */
    uint64_t tail_after; /* bytes of TCP data after which a transfer is complete */
};

struct nj_pipe_stats {
    uint64_t offered, offered_bytes, data, new_data, new_data_bytes, forwarded, forwarded_bytes;
    uint64_t drop_queue, drop_loss, drop_picked, drop_tail, drop_overrun, reordered, duplicated;
    uint64_t queue_bytes_max, frames_max;
    uint64_t tail_first, tail_last; /* first and last packet with new data, from 1, of drop_tail */
};

struct nj_pipe_frame {
    nj_ns due;
    uint64_t number;    /* order of departure of frames with the same due time */
    uint64_t new_index; /* number among packets with new TCP data, from 1; 0: no new data */
    uint32_t n_bytes;
    struct nj_pipe_frame *next_free;
    uint8_t bytes[NJ_PIPE_FRAME_MAX];
};

struct nj_pipe {
    struct nj_pipe_spec spec;
    struct nj_pipe_stats stats;
    struct nj_prng for_data, for_other, for_bursts;
    nj_ns free_at; /* when all accepted frames are serialised */
    uint32_t burst_left;
    bool seq_known;
    uint32_t seq_high; /* one past the highest TCP data so far */
    uint64_t n_numbered;
    uint32_t n_heap;
    struct nj_pipe_frame *heap[NJ_PIPE_FRAMES_MAX], *frames, *free_list;
};

/* False: out of memory. */
bool nj_pipe_init(struct nj_pipe *p, const struct nj_pipe_spec *spec, uint64_t seed);
void nj_pipe_fini(struct nj_pipe *p);

/* Adds a frame that arrived at `at`. Copies the bytes. Calls come in order of `at`. */
void nj_pipe_offer(struct nj_pipe *p, const void *bytes, uint32_t n_bytes, nj_ns at);

/* Departure time of the next frame. NJ_NEVER: no frame is in flight. */
nj_ns nj_pipe_due(const struct nj_pipe *p);

/* Removes the next frame that is due by `now`, or returns NULL. The caller returns the frame with
 * nj_pipe_done(). */
struct nj_pipe_frame *nj_pipe_take(struct nj_pipe *p, nj_ns now);
void nj_pipe_done(struct nj_pipe *p, struct nj_pipe_frame *frame);

/* Parses a spec: "rate=50M,delay=10ms,queue=64K,loss=0.01,burst=0.001:5,reorder=0.01:2ms,dup=0.001,
 * drop=3+7,tail=2:16384,of=all". Returns NULL, or the invalid item in `text`. */
const char *nj_pipe_parse(struct nj_pipe_spec *spec, const char *text);

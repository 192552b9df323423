/* SPDX-License-Identifier: BSD-3-Clause */
/* * Tests of TCP as scripts: "send this segment, expect that one", in virtual time.
 *
 * One struct world holds one struct nj_tcp and plays both its user and the peer. Sequence numbers
 * in a script are relative: `seq` to the sender's initial number, `ack` to the other's. So a SYN is
 * seq 0 and the first byte of a stream seq 1, for any real numbers, which may wrap.
 *
 * Each script runs twice, over IPv4 and, with NJ_TEST_FAMILY=6 in the environment, over IPv6. The
 * MTU is 20 bytes larger then, so that a segment carries as much as over IPv4.
 *
 * With NJ_TEST_TSO=1 the wire begins with a device that cuts large segments, and a script sees the
 * resulting segments: only the number of mbufs may differ.
 *
 * The bytes of both streams follow from their position (nj_dsl_byte), so that all delivered and
 * emitted bytes are checked without code in the test. */
#pragma once

#include <criterion/criterion.h>

#include "support/mbuf_env.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"

/* Flags as one writes them in a script. */
#define F   NJ_TCP_FIN
#define S   NJ_TCP_SYN
#define R   NJ_TCP_RST
#define P   NJ_TCP_PSH
#define A   NJ_TCP_ACK
#define SA  (NJ_TCP_SYN | NJ_TCP_ACK)
#define FA  (NJ_TCP_FIN | NJ_TCP_ACK)
#define RA  (NJ_TCP_RST | NJ_TCP_ACK)
#define MS  NJ_MS
#define SEC NJ_SEC

#define DSL_PORT    80
#define DSL_OUT_MAX 1024u
#define DSL_DATA    1600u
#define DSL_V6_MORE 20u /* the difference in length of the IPv6 and IPv4 headers */

/* A segment of the script. Omitted members are 0, or as in the comment. */
struct dsl_seg {
    uint8_t flags;
    uint32_t seq, ack; /* relative */
    uint32_t len;
    uint16_t wnd;      /* unscaled; 0 means world.wnd */
    bool no_wnd;       /* the window is really 0 */
    uint16_t mss;      /* 0: no option */
    uint8_t wscale_p1; /* shift plus one; 0: no option */
    bool ts;           /* timestamps on; world.ts puts them on every segment */
    bool no_ts;        /* not on this one */
    uint32_t tsval;    /* 0: milliseconds of the world's clock */
    uint32_t tsecr;    /* 0: the last one we saw */
    bool ecn_syn;      /* ECE and CWR to send; ECE may be there, to expect */
    uint8_t flip;      /* xor for every payload byte */
    uint16_t port;     /* local port; 0: DSL_PORT */
    bool sack_ok;      /* SACK permitted */
    /* Relative to the sequence numbers that `ack` counts; the list ends with an empty block. */
    struct nj_sack_block sack[NJ_SACK_BLOCKS_MAX];
    uint8_t ecn; /* NJ_ECN_* of the IP header */
};

/* A segment that the machine emitted. */
struct dsl_out {
    struct nj_seg seg; /* as the peer sees it; seq and ack are absolute */
    uint32_t rel_seq, rel_ack;
    uint8_t data[DSL_DATA];
    nj_ns at;
};

struct world {
    struct nj_tcp tcp;
    struct nj_counters counters;
    struct rte_mempool *pool, *rx_pool;
    nj_ns now;

    /* The wire. */
    struct dsl_out *out;
    uint32_t n_out, next_out;
    uint32_t n_cut,
        n_referred; /* segments that the device cut; mbufs in them that were references */
    uint32_t room;  /* the return value of config.room */
    uint64_t n_fed;

    /* The peer. */
    bool v6;
    struct nj_tuple tuple; /* of the connection, as the machine sees it */
    uint32_t irs;          /* the peer's initial sequence number */
    uint32_t iss;          /* ours, from the last SYN seen */
    uint16_t wnd;
    bool ts, sack;       /* sack: EXPECT checks the blocks of every segment */
    uint32_t last_tsval; /* of our segments */

    /* The user. */
    struct nj_tcb *tcb; /* NULL once released */
    uint8_t events;     /* all that came for this connection */
    bool dead;
    bool no_read;    /* leave bytes in the receive queue */
    uint32_t n_read; /* bytes read, in order and checked */
    uint32_t n_written;
};

/* Options of a test. */
struct dsl_options {
    uint32_t conns_max, half_open_max, time_wait_max, pool_mbufs;
    bool ecn;
    /* Not 0: the device cuts segments, as for all tests with NJ_TEST_TSO=1. */
    uint32_t tso_bytes_max;
    uint16_t tso_mbufs_max; /* 0: NJ_TSO_MBUFS_MAX */
    uint16_t mtu;
    const struct nj_cc_ops *cc; /* NULL: the default */
    uint32_t irs;
    bool has_iss;
    uint32_t iss; /* wait until the clock gives this number */
};

void nj_dsl_init(struct world *w, const struct dsl_options *options);
/* Abort all connections, and check that every mbuf and block was returned and every segment
 * counted. */
void nj_dsl_fini(struct world *w);
/* Whether all mbufs are in their pools, except those in TCP's cache, which is emptied first. */
bool nj_dsl_mbufs_back(struct world *w);

uint8_t nj_dsl_byte(uint32_t position, bool from_peer);
/* The MSS that a SYN without an MSS option implies: 536 or 1220. */
uint16_t nj_dsl_default_mss(void);

/* Feed a segment to nj_tcp_input(), without a turn of the shard. */
void nj_dsl_feed(struct world *w, const struct dsl_seg *s);
/* One turn of the shard: time-outs, the user, output. */
void nj_dsl_step(struct world *w);
/* Let time pass, with a turn whenever something is due. */
void nj_dsl_run(struct world *w, nj_ns duration);

struct dsl_out *nj_dsl_expect(struct world *w, const struct dsl_seg *s, int line);
struct dsl_out *nj_dsl_take(struct world *w); /* the next one, or NULL */
void nj_dsl_nothing(struct world *w, int line);

/* SYN (with the options in `syn`), SYN-ACK, ACK; the user has the connection afterwards. */
void nj_dsl_open_with(struct world *w, const struct dsl_seg *syn);
void nj_dsl_open(struct world *w); /* MSS 1460, no other option */
/* Up to state `state`, without data and without unexpected segments. */
void nj_dsl_open_to(struct world *w, enum nj_tcp_state state);

/* The user's calls. */
void nj_dsl_write(struct world *w, uint32_t n_bytes); /* queued; sent with the next step */
void nj_dsl_read(struct world *w, uint32_t n_bytes);
void nj_dsl_close(struct world *w);
void nj_dsl_abort(struct world *w);
void nj_dsl_release(struct world *w);
struct nj_flow *nj_dsl_flow(struct world *w); /* the flow of the tuple, of any kind */
struct nj_tcb *nj_dsl_find(struct world *w);  /* the same with a control block, released or not */
enum nj_tcp_state nj_dsl_state(struct world *w); /* of the tuple; CLOSED: no state is held */
uint64_t nj_dsl_count(const struct world *w, nj_counter which);

/* Feed a segment and run a step of the shard. */
#define SEND(w, ...)                                                                               \
    do {                                                                                           \
        nj_dsl_feed(w, &(struct dsl_seg){__VA_ARGS__});                                            \
        nj_dsl_step(w);                                                                            \
    } while (0)
#define FEED(w, ...)   nj_dsl_feed(w, &(struct dsl_seg){__VA_ARGS__})
#define EXPECT(w, ...) nj_dsl_expect(w, &(struct dsl_seg){__VA_ARGS__}, __LINE__)
#define NOTHING(w)     nj_dsl_nothing(w, __LINE__)
#define WRITE(w, n)                                                                                \
    do {                                                                                           \
        nj_dsl_write(w, n);                                                                        \
        nj_dsl_step(w);                                                                            \
    } while (0)
#define CLOSE(w)                                                                                   \
    do {                                                                                           \
        nj_dsl_close(w);                                                                           \
        nj_dsl_step(w);                                                                            \
    } while (0)
#define STATE(w, name)                                                                             \
    do {                                                                                           \
        cr_assert_str_eq(nj_tcp_state_name[nj_dsl_state(w)], #name);                               \
    } while (0)
#define NO_CONNECTION(w) cr_assert_null(nj_dsl_flow(w))

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests without a server (nightjar/test.h): a shard in virtual time, and clients in memory.
 *
 *   testing.c        begin and end of a test
 *   test_requests.c  clients, requests and responses: the rest of nightjar/test.h
 *   virtual_time.c   steps, and time between them
 *   h2_client.c      HTTP/2 (RFC 9113) of a client
 *   tcp_client.c     TCP of a client, on a link that loses nothing
 *   test_workers.c   OS_BLOCKING handlers
 *   mbuf_pool.c      mbufs without an EAL
 *   test_memory.c    memory of clients
 *
 * All calls belong to the test's thread.
 */
#pragma once

#include <nightjar/test.h>

#include "base/size_class_alloc.h"
#include "config/policy_snapshots.h"
#include "config/settings_validate.h"
#include "dpdk/fd_waits.h"
#include "h2/hpack/hpack.h"
#include "shard/shard.h"
#include "store/file_client.h"

#define NJ__TEST_CLIENT_ROOM (256u << 20) /* bytes of a body that a client takes by itself */

/* Bytes that grow at the end. */
struct nj__test_bytes {
    uint8_t *p;
    size_t n, n_max;
};

struct nj_test_request {
    struct nj_test_request *next; /* of its client, the latest first */
    struct nj_test_client *client;
    uint32_t id; /* of its stream; 0: the head was not sent */
    char *method, *path, *scheme, *authority;
    uint32_t n_fields;
    struct nj_test_field *field;
    struct nj__test_bytes pending; /* of the body, not sent yet */
    bool is_ended, end_sent;       /* by the client */
    bool is_slow;
    uint32_t room;  /* for the body of the response, to be told to the server */
    int64_t window; /* for the body of the request */
    struct nj__test_bytes body;
    struct nj_test_response resp;
};

struct nj_test_client {
    struct nj_test_client *next;
    struct nj_test *t;
    /* TCP */
    struct nj_tuple tuple; /* local: the client */
    uint32_t snd_nxt, snd_una, rcv_nxt;
    uint32_t peer_window;
    bool is_connected, has_fin, ack_due, is_dead; /* dead: no more bytes go either way */
    struct nj__test_bytes in, out;                /* received and not parsed; not sent yet */
    /* HTTP/2 */
    struct nj__hpack_decoder *decoder;
    struct nj__test_bytes block; /* fragments of a header block */
    uint32_t block_of, next_id;
    bool block_ends; /* the block's HEADERS has END_STREAM */
    bool has_goaway;
    int64_t window; /* for bodies of requests, of the connection */
    int64_t initial_window;
    struct nj_test_request *requests;
};

struct nj__test_workers;

struct nj_test {
    struct nj_server_config given;
    struct nj_settings settings;
    struct nj_policies *policies;
    struct nj_shape_shared *shape;
    struct nj_file_store *store;
    struct nj_file_client file_client;
    struct nj__test_workers *workers, *file_workers;
    struct nj_wakeup wakeup;  /* by other threads */
    struct nj_fd_waits waits; /* of handlers, for descriptors */
    struct nj_shard *shard;
    bool has_shard;
    struct rte_mempool *rx_pool, *tx_pool;
    nj_ns began, now;
    struct rte_mbuf **in; /* frames to the shard */
    size_t n_in, in_max;
    struct nj_iface link; /* as what the shard sends is parsed: of its destination */
    struct nj_alloc alloc;
    struct nj__hpack_shared *hpack;
    struct nj_test_client *clients, *own; /* own: that of requests without a client */
    uint16_t next_port;
};

/* --- test_memory.c --- */
void *nj__test_alloc(size_t n_bytes); /* zeroed */
void *nj__test_resize(void *p, size_t n_bytes);
char *nj__test_text(const char *p, size_t n_bytes);
void nj__test_append(struct nj__test_bytes *to, const void *p, size_t n_bytes);
void nj__test_consume(struct nj__test_bytes *from, size_t n_bytes);

/* --- virtual_time.c --- */
/* Until nothing happens any more without time. */
void nj__test_settle(struct nj_test *t);

/* --- test_requests.c --- */
void nj__test_clients_free(struct nj_test *t);

/* --- tcp_client.c --- */
extern const struct rte_ether_addr nj__test_server_mac, nj__test_link_mac;
void nj__test_tcp_open(struct nj_test_client *c);
/* Sends what the server's window has room for, and acknowledges. True: it sent something. */
bool nj__test_tcp_flush(struct nj_test_client *c);
void nj__test_tcp_reset(struct nj_test_client *c);
/* What the shard sends and receives: struct nj_shard_ops. */
uint32_t nj__test_link_rx(void *test, struct rte_mbuf **m, uint32_t n);
uint32_t nj__test_no_rx(void *test, struct rte_mbuf **m, uint32_t n);
uint32_t nj__test_link_tx(void *test, struct rte_mbuf **m, uint32_t n);

/* --- h2_client.c --- */
void nj__test_h2_open(struct nj_test_client *c);
void nj__test_h2_send_head(struct nj_test_request *r, bool ends);
/* Sends what the windows have room for. */
void nj__test_h2_send_bodies(struct nj_test_client *c);
void nj__test_h2_give_room(struct nj_test_request *r, uint32_t n_bytes);
void nj__test_h2_reset(struct nj_test_request *r);
/* Reads what has arrived. */
void nj__test_h2_input(struct nj_test_client *c);
/* The connection has ended. */
void nj__test_h2_end(struct nj_test_client *c);

/* --- test_workers.c --- */
struct pollfd; /* of <poll.h> */
/* `now`: the virtual time, read by the thread that has its turn. */
struct nj__test_workers *nj__test_workers_new(uint32_t n_threads, const nj_ns *now);
/* No task is with them. NULL is valid. */
void nj__test_workers_free(struct nj__test_workers *w);
struct nj_worker_ops nj__test_workers_ops(struct nj__test_workers *w);
/* How often a thread had its turn. */
uint64_t nj__test_workers_turns(const struct nj__test_workers *w);
/* When the first of their waits ends. */
nj_ns nj__test_workers_next_at(const struct nj__test_workers *w);
/* How many wait; each has a descriptor of its own beside those that it awaits. */
uint32_t nj__test_workers_waiting(const struct nj__test_workers *w);
/* Lists up to `n_max` of the descriptors that end their waits. Returns how many. */
uint32_t nj__test_workers_list_fds(const struct nj__test_workers *w, struct pollfd *fds,
                                   uint32_t n_max);

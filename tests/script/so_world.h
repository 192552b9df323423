/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world behind the table of packetdrill_abi.h: one struct nj_tcp in virtual time, sockets above
 * it, and IP packets below.
 *
 * Two threads may call: the creating one (it runs the script: packets, clock, calls that don't
 * block) and one for blocking calls. One lock protects everything. A blocking call of the second
 * thread sleeps. When the first thread makes its condition true, by the clock or a packet, it waits
 * until that call has returned, so that runs are reproducible. A blocking call of the first thread
 * advances the clock itself until it can return.
 */
#pragma once

#include <pthread.h>

#include "script/packetdrill_abi.h"
#include "script/tcp_probe.h"

/* Bounds for scripts: the longest published ones open a few dozen sockets. */
#define SO_FDS_MAX      128
#define SO_FD_MIN       3     /* first descriptor, even if some of 0 to 2 are closed */
#define SO_OUT_MAX      4096  /* packets not read yet; the oldest are dropped then */
#define SO_PACKET_MAX   2048u /* of sent packets */
/* Of received packets: the 16-bit length of an mbuf's buffer, minus room for a frame header. */
#define SO_RECEIVED_MAX (UINT16_MAX - RTE_PKTMBUF_HEADROOM - RTE_ETHER_HDR_LEN)
#define SO_MBUFS        2048u
#define SO_WATCHES_MAX  16
#define SO_NEVER_US     (2ull * 3600 * 1000 * 1000) /* maximum of any wait */

enum sock_kind { SOCK_FREE, SOCK_FRESH, SOCK_LISTENER, SOCK_CONNECTION, SOCK_EPOLL };

/* An entry of an epoll set. */
struct watch {
    int fd; /* 0: free */
    struct epoll_event event;
    uint32_t seen; /* value of sock.news at the last report, for EPOLLET */
};

struct sock {
    enum sock_kind kind;
    int fd; /* descriptor of the kernel; -1: none yet */
    bool nonblock;
    bool bound, accepted;  /* accepted: the user has its descriptor */
    struct nj_addr local;  /* bound to */
    uint16_t port;         /* bound to */
    int family;            /* as the user requested */
    struct nj_tcb *tcb;    /* NULL before connect() and after the end of the connection */
    struct nj_tuple tuple; /* kept after the end of the connection */
    bool opened, peer_fin, dead, no_more_reads, no_more_writes;
    int error; /* for SO_ERROR and the next call */
    bool linger_on;
    int linger_s;
    bool reuse_addr, keepalive;
    int sndbuf, rcvbuf, backlog;
    struct tcp_info last_info; /* after the end of the connection */
    struct sock *listener;     /* of a connection that waits for accept() */
    uint64_t born;             /* accept() returns the oldest */
    uint32_t news;             /* number of events */
    struct watch watch[SO_WATCHES_MAX];
};

struct out_packet {
    nj_ns at;
    uint32_t n_bytes;
    uint8_t bytes[SO_PACKET_MAX];
};

/* A thread in a blocking call, on its stack. */
struct waiter {
    struct waiter *next;
    bool (*ready)(void *arg); /* may it continue? */
    void *arg;
    nj_ns deadline;
    uint64_t number;
    bool go; /* it may continue, and all other calls wait until it has returned */
};

struct so_world {
    pthread_mutex_t lock;
    pthread_cond_t turn; /* a waiter may continue, or has returned */
    pthread_t first;
    struct waiter *waiters;
    uint64_t n_waits;
    bool returns; /* the thread `returning` is returning from a blocked call, since then: */
    pthread_t returning;
    nj_ns returned_at;
    bool ending;

    struct nj_tcp tcp;
    struct nj_counters counters;
    struct rte_mempool *pool, *rx_pool;
    nj_ns now;
    struct nj_addr local;
    uint16_t next_port;
    uint64_t n_born;
    bool in_tick; /* connections that end now end by a time-out */
    int anchor;   /* a memfd: each of our descriptors is a copy of it */
    struct sock sock[SO_FDS_MAX];
    struct out_packet *out; /* a ring */
    uint32_t out_first, n_out;
};

static inline void so_lock(struct so_world *w)
{
    pthread_mutex_lock(&w->lock);
}

static inline void so_unlock(struct so_world *w)
{
    pthread_mutex_unlock(&w->lock);
}

/* --- so_stack.c: the machine, its clock and its wire; all with the lock held ----------------- */

bool so_stack_init(struct so_world *w, const char *flags);
void so_stack_fini(struct so_world *w);
/* One turn of a shard: time-outs, news for the sockets, segments out. */
void so_turn(struct so_world *w);
/* Advance the clock to `t`, with a turn whenever one is due. */
void so_advance(struct so_world *w, nj_ns t);
/* Wait until `ready` returns true (true) or the deadline (false). */
bool so_wait(struct so_world *w, bool (*ready)(void *), void *arg, nj_ns deadline);

int so_netdev_send(void *w, const void *bytes, size_t n);
int so_netdev_receive(void *w, void *bytes, size_t *n, long long *time_us);
int so_usleep(void *w, useconds_t us);
int so_gettimeofday(void *w, struct timeval *tv, struct timezone *tz);

/* --- so_socket.c ------------------------------------------------------------------------------ */

/* The socket of a descriptor, or NULL with errno set. */
struct sock *so_sock(struct so_world *w, int fd);
/* A new socket without a descriptor, or NULL with errno set. */
struct sock *so_sock_new(struct so_world *w, enum sock_kind kind);
/* Give it a kernel descriptor, which the user may close(), fcntl() and dup() like any other.
 * Returns it, or -1 with errno set; then the socket is unchanged. */
int so_sock_open(struct so_world *w, struct sock *s);
/* The user releases it, with or without a descriptor. */
void so_sock_close(struct so_world *w, struct sock *s);
/* Handle events of a connection. */
void so_sock_events(struct so_world *w, struct nj_tcb *t, uint8_t events);
/* Current poll events. */
short so_sock_ready(const struct so_world *w, const struct sock *s);
void so_addr_put(const struct sock *s, const struct nj_addr *ip, uint16_t port, struct sockaddr *to,
                 socklen_t *n);
/* Report errno `e`. */
int so_fail(int e);

int so_socket(void *w, int domain, int type, int protocol);
int so_bind(void *w, int fd, const struct sockaddr *addr, socklen_t n);
int so_listen(void *w, int fd, int backlog);
int so_accept(void *w, int fd, struct sockaddr *addr, socklen_t *n);
int so_connect(void *w, int fd, const struct sockaddr *addr, socklen_t n);
int so_close(void *w, int fd);
int so_shutdown(void *w, int fd, int how);

/* --- so_io.c ---------------------------------------------------------------------------------- */

ssize_t so_read(void *w, int fd, void *buf, size_t n);
ssize_t so_readv(void *w, int fd, const struct iovec *iov, int n);
ssize_t so_recv(void *w, int fd, void *buf, size_t n, int flags);
ssize_t so_recvfrom(void *w, int fd, void *buf, size_t n, int flags, struct sockaddr *from,
                    socklen_t *n_from);
ssize_t so_recvmsg(void *w, int fd, struct msghdr *msg, int flags);
ssize_t so_write(void *w, int fd, const void *buf, size_t n);
ssize_t so_writev(void *w, int fd, const struct iovec *iov, int n);
ssize_t so_send(void *w, int fd, const void *buf, size_t n, int flags);
ssize_t so_sendto(void *w, int fd, const void *buf, size_t n, int flags, const struct sockaddr *to,
                  socklen_t n_to);
ssize_t so_sendmsg(void *w, int fd, const struct msghdr *msg, int flags);

/* --- so_options.c ----------------------------------------------------------------------------- */

int so_fcntl(void *w, int fd, int cmd, ...);
int so_ioctl(void *w, int fd, unsigned long request, ...);
int so_getsockopt(void *w, int fd, int level, int name, void *value, socklen_t *n);
int so_setsockopt(void *w, int fd, int level, int name, const void *value, socklen_t n);

/* --- so_poll.c -------------------------------------------------------------------------------- */

int so_poll(void *w, struct pollfd *fds, nfds_t n, int timeout_ms);
int so_epoll_create(void *w, int size);
int so_epoll_ctl(void *w, int epfd, int op, int fd, struct epoll_event *event);
int so_epoll_wait(void *w, int epfd, struct epoll_event *events, int n_max, int timeout_ms);

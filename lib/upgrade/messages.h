/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between two processes during an upgrade, on a connected SOCK_SEQPACKET socket of
 * unix(7):
 *
 *   process that ran before (A)          new process (B)
 *                                        connects
 *   description: version, ports     ->
 *                                   <-   AGREE, when its ports are open: a channel for each
 *   AGREED, with the listening socket ->
 *                                   <-   BEGIN, when B is ready
 *   BEGUN, with what management     ->
 *   has changed at run time
 *   END, when A has nothing left    ->   (or from B, when it is stopped and has given back)
 *                                   <-   END_SEEN
 *   closes
 *
 * GIVE_BACK from B instead, with what management has changed: B stops while A still runs, and A
 * takes new connections again. The end
 * of a process closes the socket, which the other one notices in every state. If A ends before
 * BEGUN, B starts alone. A process that goes on sends REFUSED before it closes.
 *
 * Descriptors that these functions return are the caller's. They wait for the other process only
 * where that is said. One thread at a time uses a socket.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>

#include <nightjar/server.h>

#include "base/types.h"

struct nj_dpdk_port;
struct nj_iface;

/* A port of this process. */
struct nj_upgrade_port {
    const struct nj_dpdk_port *dev;
    const struct nj_iface *iface; /* as configured */
    int *channel;                 /* gets the channel to the other process (dpdk/peer_channel.h) */
};

enum nj_upgrade_message {
    NJ_MESSAGE_NONE,   /* nothing has arrived */
    NJ_MESSAGE_CLOSED, /* the other process has ended, or sent something invalid */
    NJ_MESSAGE_AGREE,
    NJ_MESSAGE_AGREED,
    NJ_MESSAGE_BEGIN,
    NJ_MESSAGE_BEGUN,
    NJ_MESSAGE_GIVE_BACK,
    NJ_MESSAGE_END,
    NJ_MESSAGE_END_SEEN,
    NJ_MESSAGE_REFUSED,
};

/* Why a server cannot be taken over from now. */
enum nj_upgrade_busy {
    NJ_BUSY_STARTING = 1, /* another process has connected, and has not begun */
    NJ_BUSY_UPGRADING,    /* it still has a connection to the process before it */
};

/* A port as the other process has to find it: connections belong to its addresses. */
struct nj_port_description {
    char name[64], driver[32];
    uint8_t mac[RTE_ETHER_ADDR_LEN];
    uint16_t vlan;
    uint8_t shareable, n_addrs; /* shareable: 0 or 1 */
    struct nj_addr addr[NJ_SERVER_ADDRS_MAX];
};

struct nj_upgrade_description {
    char magic[16]; /* and the version of this protocol */
    char version[32];
    int32_t pid;
    uint32_t busy; /* enum nj_upgrade_busy; 0: not */
    uint32_t n_ports;
    struct nj_port_description port[NJ_SERVER_PORTS_MAX];
};

/* This process, not busy, and its ports. */
void nj__upgrade_describe(const struct nj_upgrade_port *port, uint32_t n_ports,
                          struct nj_upgrade_description *out);

/* A socket that listens at `path`, for this user only. Replaces one that no process listens to, and
 * nothing else. -1: errno has the reason, ENOTSOCK if something else is there. */
int nj__upgrade_listen(const char *path);
/* Connects to `path`. -1 if no process listens there, -2 if errno has another reason, ENOTSOCK as
 * above. Receiving on the socket waits for some seconds. */
int nj__upgrade_connect(const char *path);
/* Accepts a process of the same user or of root, without waiting. -1: there is none. */
int nj__upgrade_accept(int listen_fd);

bool nj__upgrade_send_description(int fd, const struct nj_upgrade_description *d);
/* False: nothing came in time (errno is EAGAIN), or no description that this version understands.
 */
bool nj__upgrade_receive_description(int fd, struct nj_upgrade_description *d);

/* With `n` descriptors, at most NJ_SERVER_PORTS_MAX. */
bool nj__upgrade_send(int fd, enum nj_upgrade_message what, const int *fds, uint32_t n);
/* Waits only if `wait`; then NONE means that nothing came in time. Puts up to *n descriptors into
 * `fds`, which the caller closes, and sets *n. */
enum nj_upgrade_message nj__upgrade_receive(int fd, bool wait, int *fds, uint32_t *n);

/* Closes the descriptor, if there is one, and sets it to -1. */
void nj__upgrade_close_fd(int *fd);

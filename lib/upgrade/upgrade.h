/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Upgrade: a new process takes over new connections while the one that ran before completes its own
 * (docs/adr/0024-two-processes-share-a-port.md). Both use the same device meanwhile, which net_tap
 * and net_af_packet allow. The end of either at any time leaves the other one serving.
 *
 * The calls of bring-up are made by the main thread, the others by the supervisor. Those that
 * return int return 0, or -1 with the reason in `why`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nightjar/server.h>

#include "base/types.h"
#include "dpdk/run_phase.h"
#include "upgrade/messages.h"
#include "upgrade/socket_file.h"

/* An upgrade, as this process sees it. */
enum nj_upgrade_state {
    NJ_UPGRADE_NONE,      /* no other process is concerned */
    NJ_UPGRADE_OFFERED,   /* another process has connected */
    NJ_UPGRADE_CONTACTED, /* connected to the running server, from whose port on both share it */
    NJ_UPGRADE_AGREED,    /* both use the port; the one that ran before keeps new connections */
    NJ_UPGRADE_TAKES,     /* this process takes new connections */
    NJ_UPGRADE_LAST,      /* ... and those that the other one, which ends, still receives */
    NJ_UPGRADE_YIELDS,    /* the other one takes new connections */
};

/* What the server does in an upgrade. They are called by the thread that calls the upgrade. */
struct nj_upgrade_hooks {
    /* Set the phase of all lcores. */
    void (*set_phase)(void *ctx, enum nj_run_phase phase);
    /* Another process takes new connections from now on, or does so no longer. */
    void (*on_yield)(void *ctx, bool yields);
    /* What management has changed, for the process that takes new connections from now on: returns
     * a descriptor of which the caller closes its own, or -1: nothing. The other process reads.
     * False: nothing has changed there. */
    int (*write_changes)(void *ctx);
    bool (*read_changes)(void *ctx, int fd);
    void *ctx;
};

struct nj_upgrade {
    struct nj_upgrade_hooks hooks;
    nj_ns timeout; /* for the connections that this process has when it yields */
    enum nj_upgrade_state state;
    int listen_fd, peer_fd;     /* -1: none */
    struct nj_socket_file file; /* of listen_fd. A worker calls nj_socket_file_watch() on it */
    uint32_t n_ports;           /* 0 until nj_upgrade_agree() */
    struct nj_upgrade_port port[NJ_SERVER_PORTS_MAX];
    int channel[NJ_SERVER_PORTS_MAX];      /* of each port, to the other process; -1: none */
    struct nj_upgrade_description running; /* CONTACTED: the other process */
    bool has_announced_end;                /* YIELDS: told the other process that nothing is left */
    bool has_confirmed_end;                /* YIELDS: it has answered. LAST: we have answered */
    nj_ns announced_at;                    /* our end, or that of the other process */
    nj_ns offered_at;                      /* OFFERED, AGREED: the other process connected */
    nj_ns deadline;         /* of the connections that this process has; NJ_NEVER: none */
    bool has_changes;       /* false: those of the other process did not come, and it keeps them */
    bool is_stopping;       /* after nj_upgrade_stop() */
    nj_ns stop_waits_until; /* OFFERED, AGREED, and this process stops: it waits to be taken over */
    bool waits_no_longer;   /* that time is over: it drains, and can still be taken over */
    char tap_arg[NJ_SERVER_PORTS_MAX][256]; /* EAL arguments with the MAC address of the tap */
};

/* --- bring-up, in this order ------------------------------------------------------------------ */

/* `path`: of the socket, which the caller keeps; NULL: no process can take over. `timeout`: for the
 * connections that this process has when it yields. */
void nj_upgrade_init(struct nj_upgrade *u, const char *path, nj_ns timeout,
                     const struct nj_upgrade_hooks *hooks);

/* Connect to the running server, if there is one, before the EAL uses its devices. Arguments of the
 * EAL that name a tap are replaced by ones with its MAC address, which `u` keeps. */
int nj_upgrade_contact(struct nj_upgrade *u, int argc, char **argv, char *why, size_t why_bytes);
/* The ports are open. Agree on sharing them, as the user of the start, who may enlarge the buffers
 * of sockets. `port` is copied; what its members point to stays until nj_upgrade_close(). */
int nj_upgrade_agree(struct nj_upgrade *u, const struct nj_upgrade_port *port, uint32_t n_ports,
                     char *why, size_t why_bytes);
/* Listen for the next process, unless the running one has passed its socket. As the server's user,
 * so that the socket is theirs; `user` is the name for messages, or "". */
int nj_upgrade_listen(struct nj_upgrade *u, const char *user, char *why, size_t why_bytes);
/* Take new connections. */
int nj_upgrade_begin(struct nj_upgrade *u, char *why, size_t why_bytes);

/* Undo nj_upgrade_contact() and what came after it. Main thread, after the supervisor. */
void nj_upgrade_close(struct nj_upgrade *u);

/* --- the supervisor --------------------------------------------------------------------------- */

/* Accept, answer and watch the other process. Once per tick. */
void nj_upgrade_tick(struct nj_upgrade *u, nj_ns now);
/* The server stops, and resets its connections at `deadline`: set the phase, and give new
 * connections back if they are taken from a process that still runs. If another process is about to
 * take over, the phase waits for it for some seconds. */
void nj_upgrade_stop(struct nj_upgrade *u, nj_ns now, nj_ns deadline);
/* Nothing is left to do: may the process end? Not before the other one knows. */
bool nj_upgrade_may_end(struct nj_upgrade *u, nj_ns now);

/* Does another process use our devices? */
static inline bool nj_upgrade_shares_ports(const struct nj_upgrade *u)
{
    return u->state != NJ_UPGRADE_NONE;
}

/* Does this process complete its connections, and another one take the new ones? */
static inline bool nj_upgrade_yields(const struct nj_upgrade *u)
{
    return u->state == NJ_UPGRADE_YIELDS;
}

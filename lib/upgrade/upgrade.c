/* SPDX-License-Identifier: BSD-3-Clause */
/* Both processes, while they run: each is in a state, which messages of the other one change. */
#include "upgrade/upgrade.h"

#include <sys/socket.h>
#include <unistd.h>

#include "dpdk/eal.h"
#include "log/log.h"

#define CONFIRM_TIMEOUT (2 * NJ_SEC)  /* the other process confirms our end in two ticks */
#define START_TIMEOUT   (10 * NJ_SEC) /* a process that stops waits so long for one that starts */
#define OFFER_TIMEOUT   (60 * NJ_SEC) /* another may then replace one that has not taken over */

void nj_upgrade_init(struct nj_upgrade *u, const char *path, nj_ns timeout,
                     const struct nj_upgrade_hooks *hooks)
{
    *u = (struct nj_upgrade){.hooks = *hooks,
                             .timeout = timeout,
                             .listen_fd = -1,
                             .peer_fd = -1,
                             .file = {.path = path},
                             .has_changes = true,
                             .deadline = NJ_NEVER};
    for (uint32_t k = 0; k < NJ_SERVER_PORTS_MAX; k++)
        u->channel[k] = -1;
}

void nj_upgrade_close(struct nj_upgrade *u)
{
    if (nj_upgrade_shares_ports(u))
        nj_eal_keep_devices();
    else if (u->listen_fd >= 0 && nj__socket_file_is_own(&u->file))
        unlink(u->file.path);
    nj__upgrade_close_fd(&u->listen_fd);
    nj__upgrade_close_fd(&u->peer_fd);
    for (uint32_t k = 0; k < NJ_SERVER_PORTS_MAX; k++)
        nj__upgrade_close_fd(&u->channel[k]);
}

/* Only a close without this message means that this process has ended. With unread messages of the
 * other one, close() would be an error for it in place of the message. */
static void refuse(int fd)
{
    int fds[NJ_SERVER_PORTS_MAX];
    enum nj_upgrade_message what;

    shutdown(fd, SHUT_RD);
    do {
        uint32_t n = NJ_SERVER_PORTS_MAX;
        what = nj__upgrade_receive(fd, false, fds, &n);
        while (n > 0)
            nj__upgrade_close_fd(&fds[--n]);
    } while (what != NJ_MESSAGE_NONE && what != NJ_MESSAGE_CLOSED);
    (void)nj__upgrade_send(fd, NJ_MESSAGE_REFUSED, NULL, 0);
}

static void set_phase(const struct nj_upgrade *u, enum nj_run_phase phase)
{
    u->hooks.set_phase(u->hooks.ctx, phase);
}

static void on_yield(const struct nj_upgrade *u, bool yields)
{
    u->hooks.on_yield(u->hooks.ctx, yields);
}

static void serve_alone(struct nj_upgrade *u)
{
    bool was_offer = u->state == NJ_UPGRADE_OFFERED;

    refuse(u->peer_fd); /* if it has not ended */
    nj__upgrade_close_fd(&u->peer_fd);
    u->state = NJ_UPGRADE_NONE;
    u->waits_no_longer = false;
    if (!u->is_stopping)
        u->deadline = NJ_NEVER;
    if (was_offer && !u->is_stopping)
        return;
    set_phase(u, u->is_stopping ? NJ_PHASE_DRAIN : NJ_PHASE_RUN);
    on_yield(u, false);
    nj_log(NJ_LEVEL_INFO, "upgrade: the other process has ended: this one serves alone");
}

static bool is_starting(const struct nj_upgrade *u)
{
    return u->state == NJ_UPGRADE_OFFERED || u->state == NJ_UPGRADE_AGREED;
}

/* Both processes have the listening socket; only the one that takes new connections accepts. */
static void accept_process(struct nj_upgrade *u, nj_ns now)
{
    struct nj_upgrade_description ours;
    int fd = nj__upgrade_accept(u->listen_fd);

    if (fd < 0)
        return;
    if (is_starting(u) && now - u->offered_at > OFFER_TIMEOUT)
        serve_alone(u);
    nj__upgrade_describe(u->port, u->n_ports, &ours);
    ours.busy = u->state == NJ_UPGRADE_NONE ? 0
                : is_starting(u)            ? NJ_BUSY_STARTING
                                            : NJ_BUSY_UPGRADING;
    if (!nj__upgrade_send_description(fd, &ours) || ours.busy) {
        close(fd);
        return;
    }
    u->peer_fd = fd;
    u->offered_at = now;
    u->state = NJ_UPGRADE_OFFERED;
}

/* The channels of an earlier upgrade are closed here: its lcores have left that phase. */
static void agree(struct nj_upgrade *u, const int *fds)
{
    for (uint32_t k = 0; k < u->n_ports; k++) {
        nj__upgrade_close_fd(&u->channel[k]);
        u->channel[k] = *u->port[k].channel = fds[k];
    }
    u->has_announced_end = u->has_confirmed_end = false;
    u->state = NJ_UPGRADE_AGREED;
    if (!u->waits_no_longer)
        set_phase(u, NJ_PHASE_KEEP);
    nj__upgrade_send(u->peer_fd, NJ_MESSAGE_AGREED, &u->listen_fd, 1);
}

/* Without memory for what management has changed, the message comes without it. */
static bool send_with_changes(const struct nj_upgrade *u, enum nj_upgrade_message what)
{
    int changes = u->has_changes ? u->hooks.write_changes(u->hooks.ctx) : -1;
    bool ok = nj__upgrade_send(u->peer_fd, what, &changes, changes >= 0);

    nj__upgrade_close_fd(&changes);
    return ok;
}

static void yield_connections(struct nj_upgrade *u, nj_ns now)
{
    u->state = NJ_UPGRADE_YIELDS;
    u->deadline = now + u->timeout;
    set_phase(u, NJ_PHASE_YIELD);
    on_yield(u, true); /* before: management changes nothing from here on */
    send_with_changes(u, NJ_MESSAGE_BEGUN);
}

static void take_back(struct nj_upgrade *u)
{
    u->state = NJ_UPGRADE_TAKES;
    u->deadline = NJ_NEVER;
    u->has_announced_end = u->has_confirmed_end = false;
    set_phase(u, NJ_PHASE_TAKE);
    on_yield(u, false);
    nj_log(NJ_LEVEL_INFO, "upgrade: the other process stops: this one takes new connections again");
}

static void handle_message(struct nj_upgrade *u, enum nj_upgrade_message what, const int *fds,
                           uint32_t n_fds, nj_ns now)
{
    if (what == NJ_MESSAGE_AGREE && u->state == NJ_UPGRADE_OFFERED && n_fds == u->n_ports) {
        agree(u, fds);
        return;
    }
    if (what == NJ_MESSAGE_GIVE_BACK && u->state == NJ_UPGRADE_YIELDS && !u->is_stopping &&
        n_fds == 1)
        (void)u->hooks.read_changes(u->hooks.ctx, fds[0]);
    for (uint32_t i = 0; i < n_fds; i++)
        close(fds[i]);
    if (what == NJ_MESSAGE_BEGIN && u->state == NJ_UPGRADE_AGREED) {
        yield_connections(u, now);
    } else if (what == NJ_MESSAGE_GIVE_BACK && u->state == NJ_UPGRADE_YIELDS) {
        if (!u->is_stopping) /* else both stop, and each completes its connections */
            take_back(u);
    } else if (what == NJ_MESSAGE_END && u->state == NJ_UPGRADE_YIELDS) {
        nj__upgrade_send(u->peer_fd, NJ_MESSAGE_END_SEEN, NULL, 0);
    } else if (what == NJ_MESSAGE_END && u->state == NJ_UPGRADE_TAKES) {
        u->state = NJ_UPGRADE_LAST;
        u->announced_at = now;
        set_phase(u, NJ_PHASE_KEEP);
    } else if (what == NJ_MESSAGE_END_SEEN && u->state == NJ_UPGRADE_YIELDS) {
        u->has_confirmed_end = true;
    } else {
        serve_alone(u); /* closed, or not in this state */
    }
}

static void receive_all(struct nj_upgrade *u, nj_ns now)
{
    int fds[NJ_SERVER_PORTS_MAX];
    enum nj_upgrade_message what = NJ_MESSAGE_NONE;

    /* One tick after the message, lcores keep what only the other process would have kept. */
    if (u->state == NJ_UPGRADE_LAST && !u->has_confirmed_end && now > u->announced_at)
        u->has_confirmed_end = nj__upgrade_send(u->peer_fd, NJ_MESSAGE_END_SEEN, NULL, 0);
    do {
        uint32_t n_fds = NJ_SERVER_PORTS_MAX;
        if (u->state == NJ_UPGRADE_NONE)
            return;
        what = nj__upgrade_receive(u->peer_fd, false, fds, &n_fds);
        if (what != NJ_MESSAGE_NONE)
            handle_message(u, what, fds, n_fds, now);
    } while (what != NJ_MESSAGE_NONE);
}

void nj_upgrade_tick(struct nj_upgrade *u, nj_ns now)
{
    receive_all(u, now);
    /* The process that starts may still take over, until this one ends. */
    if (u->is_stopping && is_starting(u) && !u->waits_no_longer && now >= u->stop_waits_until) {
        u->waits_no_longer = true;
        set_phase(u, NJ_PHASE_DRAIN);
    }
    if (u->listen_fd >= 0 && !u->is_stopping && u->state != NJ_UPGRADE_YIELDS)
        accept_process(u, now);
}

void nj_upgrade_stop(struct nj_upgrade *u, nj_ns now, nj_ns deadline)
{
    u->is_stopping = true;
    if (u->state == NJ_UPGRADE_YIELDS)
        return; /* as before, with the deadline of a stop */
    if (u->state == NJ_UPGRADE_TAKES && send_with_changes(u, NJ_MESSAGE_GIVE_BACK)) {
        u->state = NJ_UPGRADE_YIELDS;
        set_phase(u, NJ_PHASE_YIELD);
        return;
    }
    if (is_starting(u)) { /* until it takes over, this process serves as before */
        u->stop_waits_until = now + nj_min_u64(START_TIMEOUT, (deadline - now) / 2);
        return;
    }
    set_phase(u, NJ_PHASE_DRAIN);
}

bool nj_upgrade_may_end(struct nj_upgrade *u, nj_ns now)
{
    if (is_starting(u) && !u->waits_no_longer)
        return false;
    if (u->state != NJ_UPGRADE_YIELDS)
        return true;
    if (!u->has_announced_end) {
        u->has_announced_end = nj__upgrade_send(u->peer_fd, NJ_MESSAGE_END, NULL, 0);
        u->announced_at = now;
    }
    return u->has_confirmed_end || now - u->announced_at > CONFIRM_TIMEOUT;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Upgrade: a new process takes over new connections while the one that ran before completes its own
 * (docs/adr/0024-two-processes-share-a-port.md). Both use the same device meanwhile, which net_tap
 * and net_af_packet allow. The end of either at any time leaves the other one serving.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_ether.h>

#include "dpdk/eal.h"
#include "dpdk/peer_channel.h"
#include "log/log.h"
#include "server/server_internal.h"
#include "server/upgrade_messages.h"

#define CONFIRM_IN (2 * NJ_SEC)  /* the other process confirms our end in two ticks */
#define START_ENDS (10 * NJ_SEC) /* a process that stops waits so long for one that starts */
#define OFFER_ENDS                                                                                 \
    (60 * NJ_SEC) /* another process may then replace one that has not taken over                  \
                   */
/* While a deployment replaces a link on the path, it may lead nowhere for a moment. */
#define CHECKS_UNTIL_TOLD 2u

/* --- the socket's file ------------------------------------------------------------------------ */

/* fstat(2) of the descriptor has another number. */
static void remember_socket(struct nj_server *s)
{
    struct stat st = {0};

    (void)lstat(s->given.upgrade_socket, &st);
    s->upgrade.socket_dev = st.st_dev;
    s->upgrade.socket_ino = st.st_ino;
}

/* Else a link on the path was replaced, or another process has made its socket there. */
static bool is_own_socket(const struct nj_server *s)
{
    struct stat st;

    return lstat(s->given.upgrade_socket, &st) == 0 && st.st_dev == s->upgrade.socket_dev &&
           st.st_ino == s->upgrade.socket_ino;
}

void nj__server_watch_upgrade_socket(struct nj_server *s)
{
    struct nj_upgrade *u = &s->upgrade;

    if (!s->given.upgrade_socket || s->is_yielding)
        return;
    if (is_own_socket(s))
        u->lost_checks = 0;
    else if (++u->lost_checks == CHECKS_UNTIL_TOLD)
        nj_log(NJ_LEVEL_WARNING,
               "--upgrade-socket %s: this path leads no longer to the socket of this server: no "
               "process can take over from it: name a path that deployments do not change",
               s->given.upgrade_socket);
}

/* --- the new process, in bring-up ------------------------------------------------------------ */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Without its MAC address among the arguments net_tap would give the interface another one, and so
 * cut the connections of the running server. */
static void keep_tap_macs(struct nj_server *s)
{
    struct nj_upgrade *u = &s->upgrade;
    uint32_t n = 0;

    for (int i = 1; i < s->presets.argc && strcmp(s->presets.argv[i], "--") != 0; i++)
        if (n < NJ_SERVER_PORTS_MAX && nj_eal_tap_with_mac_of_interface(
                                           s->presets.argv[i], u->tap_arg[n], sizeof u->tap_arg[n]))
            s->presets.argv[i] = u->tap_arg[n++];
}

/* The reason is in errno. */
static void cannot_use(struct nj_server *s, const char *path)
{
    snprintf(s->why, sizeof s->why, "--upgrade-socket %s: %s", path,
             errno == ENOTSOCK ? "something else than a socket exists there; name another path"
                               : strerror(errno));
}

static bool read_description(struct nj_server *s)
{
    struct nj_upgrade_description *d = &s->upgrade.running;
    const char *path = s->given.upgrade_socket;

    if (!nj__upgrade_receive_description(s->upgrade.peer_fd, d)) {
        snprintf(s->why, sizeof s->why,
                 errno == EPROTO
                     ? "--upgrade-socket %s: the running server has another protocol of upgrades: "
                       "stop it, and then start this one"
                     : "--upgrade-socket %s: the running server does not answer",
                 path);
        return false;
    }
    if (d->is_busy) {
        snprintf(s->why, sizeof s->why,
                 d->is_busy == NJ_BUSY_STARTING
                     ? "--upgrade-socket %s: another process is about to take over from process "
                       "%d: try again later (after a minute, if that process hangs)"
                     : "--upgrade-socket %s: another upgrade is not complete: process %d takes "
                       "over, and the one before it still has connections",
                 path, d->pid);
        return false;
    }
    for (uint32_t k = 0; k < d->n_ports; k++) {
        /* net_af_packet makes the number of its group of sockets (packet(7), PACKET_FANOUT) from
         * these bits of the process id. In the same group each frame would reach one process only.
         */
        if (strcmp(d->port[k].driver, "net_af_packet") == 0 &&
            ((d->pid ^ getpid()) & 0xffff) == 0) {
            snprintf(s->why, sizeof s->why,
                     "--upgrade-socket %s: the running server has process id %d and this one %d: "
                     "start it again, in the same PID namespace",
                     path, d->pid, getpid());
            return false;
        }
        if (!d->port[k].is_shareable) {
            snprintf(s->why, sizeof s->why,
                     "--upgrade-socket %s: process %d uses %s (%s), which two processes cannot "
                     "use at once: see \"Upgrade\" in docs/deploy.md",
                     path, d->pid, d->port[k].name, d->port[k].driver);
            return false;
        }
    }
    return true;
}

bool nj__server_contact_running(struct nj_server *s)
{
    struct nj_upgrade *u = &s->upgrade;
    const char *path = s->given.upgrade_socket;

    u->listen_fd = u->peer_fd = -1;
    for (uint32_t k = 0; k < NJ_SERVER_PORTS_MAX; k++)
        u->channel[k] = -1;
    if (!path)
        return true;
    u->peer_fd = nj__upgrade_connect(path);
    if (u->peer_fd == -1)
        return true;
    if (u->peer_fd < 0) {
        cannot_use(s, path);
        return false;
    }
    if (!read_description(s)) {
        close_fd(&u->peer_fd);
        return false;
    }
    u->state = NJ_UPGRADE_CONTACTED;
    keep_tap_macs(s);
    nj_log(NJ_LEVEL_INFO, "upgrade: nightjar %s runs as process %d", u->running.version,
           u->running.pid);
    return true;
}

static bool has_addrs_of(const struct nj_upgrade_port *ours, const struct nj_upgrade_port *running)
{
    for (uint32_t i = 0; i < running->n_addrs; i++) {
        bool found = false;
        for (uint32_t j = 0; j < ours->n_addrs && !found; j++)
            found = nj_addr_eq(&ours->addr[j], &running->addr[i]);
        if (!found)
            return false;
    }
    return true;
}

/* Connections of the running server need its addresses on its ports. */
static bool are_ports_equal(struct nj_server *s, const struct nj_upgrade_description *running)
{
    struct nj_upgrade_description ours;
    const char *differs = NULL;
    uint32_t k = 0;

    nj__upgrade_describe(s, &ours);
    if (ours.n_ports != running->n_ports)
        differs = "number of ports";
    for (; !differs && k < ours.n_ports; k++) {
        const struct nj_upgrade_port *a = &ours.port[k], *b = &running->port[k];
        differs = strcmp(a->driver, b->driver) != 0            ? "driver"
                  : memcmp(a->mac, b->mac, sizeof a->mac) != 0 ? "interface or MAC address"
                  : a->vlan != b->vlan                         ? "--vlan"
                  : !has_addrs_of(a, b)                        ? "set of addresses (--addr)"
                                                               : NULL;
    }
    if (differs)
        snprintf(s->why, sizeof s->why,
                 "upgrade: port %u has another %s than in process %d, which would lose its "
                 "connections",
                 k > 0 ? k - 1 : 0, differs, running->pid);
    return !differs;
}

/* The reason is in errno. */
static void cannot_listen(struct nj_server *s, const char *path)
{
    const char *user = s->privileges.user.name;

    if ((errno == EACCES || errno == EPERM) && user[0])
        snprintf(s->why, sizeof s->why,
                 "--upgrade-socket %s: user %s cannot make a socket there: chown %s its folder, or "
                 "choose another user with --user",
                 path, user, user);
    else
        cannot_use(s, path);
}

/* After the change of the user, so that the socket belongs to the server's user. As root, a change
 * of its owner by path could be led to another file by whoever owns the folder. */
bool nj__server_listen_for_upgrade(struct nj_server *s)
{
    const char *path = s->given.upgrade_socket;

    if (!path || s->upgrade.listen_fd >= 0)
        return true;
    int other = nj__upgrade_connect(path);
    if (other >= 0) {
        close(other);
        snprintf(s->why, sizeof s->why,
                 "--upgrade-socket %s: another process has started meanwhile: start this one again",
                 path);
        return false;
    }
    for (uint32_t k = 0; k < s->n_ports; k++)
        if (!s->port[k].dev.is_shareable) {
            nj_log(NJ_LEVEL_WARNING,
                   "--upgrade-socket: two processes cannot use %s (%s) at once: no process can "
                   "take over from this one",
                   s->port[k].dev.name, s->port[k].dev.driver);
            break;
        }
    s->upgrade.listen_fd = nj__upgrade_listen(path);
    if (s->upgrade.listen_fd < 0) {
        cannot_listen(s, path);
        return false;
    }
    remember_socket(s);
    return true;
}

static bool no_answer(struct nj_server *s)
{
    snprintf(s->why, sizeof s->why,
             "upgrade: process %d does not answer, or goes on without this one",
             s->upgrade.running.pid);
    return false;
}

/* The server that ran before has ended, without a message: this one starts alone. */
static void go_on_alone(struct nj_server *s)
{
    struct nj_upgrade *u = &s->upgrade;

    close_fd(&u->peer_fd);
    u->state = NJ_UPGRADE_NONE;
    nj_log(NJ_LEVEL_WARNING, "upgrade: process %d has ended, and its connections are lost",
           u->running.pid);
}

/* Packets are delivered to this process, too. */
static bool attach_ports(struct nj_server *s)
{
    for (uint32_t k = 0; k < s->n_ports; k++)
        if (nj_dpdk_port_attach_queues(&s->port[k].dev, s->why, sizeof s->why) != 0)
            return false;
    return true;
}

bool nj__server_agree_upgrade(struct nj_server *s)
{
    struct nj_upgrade *u = &s->upgrade;
    int theirs[NJ_SERVER_PORTS_MAX];
    uint32_t n = 0, n_fds = 1;
    enum nj_upgrade_message answer;
    bool ok = true;

    if (u->state != NJ_UPGRADE_CONTACTED)
        return true;
    if (!are_ports_equal(s, &u->running))
        return false;
    for (; ok && n < s->n_ports; n++) {
        int both[2] = {-1, -1};
        ok = nj_peer_channel_open(both);
        u->channel[n] = s->port[n].fabric.peer_fd = both[0];
        theirs[n] = both[1];
    }
    if (ok) /* if that fails, the answer says why */
        (void)nj__upgrade_send(u->peer_fd, NJ_MESSAGE_AGREE, theirs, n);
    while (n > 0)
        close_fd(&theirs[--n]);
    answer = ok ? nj__upgrade_receive(u->peer_fd, true, &u->listen_fd, &n_fds) : NJ_MESSAGE_NONE;
    if (answer == NJ_MESSAGE_CLOSED) {
        go_on_alone(s);
        return true;
    }
    if (answer != NJ_MESSAGE_AGREED || n_fds != 1)
        return no_answer(s);
    u->state = NJ_UPGRADE_AGREED;
    remember_socket(s);
    return true;
}

bool nj__server_begin_upgrade(struct nj_server *s)
{
    struct nj_upgrade *u = &s->upgrade;
    uint32_t n_fds = 0;

    if (!attach_ports(s))
        return false;
    if (u->state != NJ_UPGRADE_AGREED)
        return true;
    (void)nj__upgrade_send(u->peer_fd, NJ_MESSAGE_BEGIN, NULL, 0);
    enum nj_upgrade_message answer = nj__upgrade_receive(u->peer_fd, true, NULL, &n_fds);
    if (answer == NJ_MESSAGE_CLOSED) {
        go_on_alone(s);
        nj__server_set_lcore_phase(s, NJ_PHASE_RUN);
        return true;
    }
    if (answer != NJ_MESSAGE_BEGUN)
        return no_answer(s);
    u->state = NJ_UPGRADE_TAKES;
    nj_log(NJ_LEVEL_INFO, "upgrade: took over from process %d, which completes its connections",
           u->running.pid);
    return true;
}

void nj__server_close_upgrade(struct nj_server *s)
{
    struct nj_upgrade *u = &s->upgrade;

    if (nj__server_shares_ports(s))
        nj_eal_keep_devices();
    else if (u->listen_fd >= 0 && is_own_socket(s))
        unlink(s->given.upgrade_socket);
    close_fd(&u->listen_fd);
    close_fd(&u->peer_fd);
    for (uint32_t k = 0; k < NJ_SERVER_PORTS_MAX; k++)
        close_fd(&u->channel[k]);
}

bool nj__server_shares_ports(const struct nj_server *s)
{
    return s->upgrade.state != NJ_UPGRADE_NONE;
}

/* --- both, while they run --------------------------------------------------------------------- */

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
            close_fd(&fds[--n]);
    } while (what != NJ_MESSAGE_NONE && what != NJ_MESSAGE_CLOSED);
    (void)nj__upgrade_send(fd, NJ_MESSAGE_REFUSED, NULL, 0);
}

static void be_alone(struct nj_server *s)
{
    struct nj_upgrade *u = &s->upgrade;
    bool was_offer = u->state == NJ_UPGRADE_OFFERED;

    refuse(u->peer_fd); /* if it has not ended */
    close_fd(&u->peer_fd);
    u->state = NJ_UPGRADE_NONE;
    u->waits_no_longer = false;
    if (was_offer && !s->is_stopping)
        return;
    nj__server_set_lcore_phase(s, s->is_stopping ? NJ_PHASE_DRAIN : NJ_PHASE_RUN);
    nj__server_service_yields(s, false);
    nj_log(NJ_LEVEL_INFO, "upgrade: the other process has ended: this one serves alone");
}

static bool is_starting(const struct nj_upgrade *u)
{
    return u->state == NJ_UPGRADE_OFFERED || u->state == NJ_UPGRADE_AGREED;
}

/* Both processes have the listening socket; only the one that takes new connections accepts. */
static void accept_process(struct nj_server *s, nj_ns now)
{
    struct nj_upgrade *u = &s->upgrade;
    struct nj_upgrade_description ours;
    int fd = nj__upgrade_accept(u->listen_fd);

    if (fd < 0)
        return;
    if (is_starting(u) && now - u->offered_at > OFFER_ENDS)
        be_alone(s);
    nj__upgrade_describe(s, &ours);
    ours.is_busy = u->state == NJ_UPGRADE_NONE ? 0
                   : is_starting(u)            ? NJ_BUSY_STARTING
                                               : NJ_BUSY_UPGRADING;
    if (!nj__upgrade_send_description(fd, &ours) || ours.is_busy) {
        close(fd);
        return;
    }
    u->peer_fd = fd;
    u->offered_at = now;
    u->state = NJ_UPGRADE_OFFERED;
}

/* The channels of an earlier upgrade are closed here: its lcores have left that phase. */
static void agree(struct nj_server *s, const int *fds)
{
    struct nj_upgrade *u = &s->upgrade;

    for (uint32_t k = 0; k < s->n_ports; k++) {
        close_fd(&u->channel[k]);
        u->channel[k] = s->port[k].fabric.peer_fd = fds[k];
    }
    u->has_announced_end = u->has_confirmed_end = false;
    u->state = NJ_UPGRADE_AGREED;
    if (!u->waits_no_longer)
        nj__server_set_lcore_phase(s, NJ_PHASE_KEEP);
    nj__upgrade_send(u->peer_fd, NJ_MESSAGE_AGREED, &u->listen_fd, 1);
}

static void yield_connections(struct nj_server *s, nj_ns now)
{
    uint64_t open = nj__server_sum_counter(s, NJ_C_connections);
    nj_ns deadline = now + (nj_ns)(s->settings.config->upgrade_timeout_s * (double)NJ_SEC);

    s->upgrade.state = NJ_UPGRADE_YIELDS;
    s->deadline = s->is_stopping ? nj_min_u64(s->deadline, deadline) : deadline;
    nj__server_set_lcore_phase(s, NJ_PHASE_YIELD);
    nj__upgrade_send(s->upgrade.peer_fd, NJ_MESSAGE_BEGUN, NULL, 0);
    nj__server_service_yields(s, true);
    nj_log(NJ_LEVEL_INFO, "upgrade: another process takes new connections: %lu connection%s open",
           (unsigned long)open, open == 1 ? "" : "s");
}

static void take_back(struct nj_server *s)
{
    s->upgrade.state = NJ_UPGRADE_TAKES;
    s->upgrade.has_announced_end = s->upgrade.has_confirmed_end = false;
    nj__server_set_lcore_phase(s, NJ_PHASE_TAKE);
    nj__server_service_yields(s, false);
    nj_log(NJ_LEVEL_INFO, "upgrade: the other process stops: this one takes new connections again");
}

static void handle_message(struct nj_server *s, enum nj_upgrade_message what, const int *fds,
                           uint32_t n_fds, nj_ns now)
{
    struct nj_upgrade *u = &s->upgrade;

    if (what == NJ_MESSAGE_AGREE && u->state == NJ_UPGRADE_OFFERED && n_fds == s->n_ports) {
        agree(s, fds);
        return;
    }
    for (uint32_t i = 0; i < n_fds; i++)
        close(fds[i]);
    if (what == NJ_MESSAGE_BEGIN && u->state == NJ_UPGRADE_AGREED) {
        yield_connections(s, now);
    } else if (what == NJ_MESSAGE_GIVE_BACK && u->state == NJ_UPGRADE_YIELDS) {
        if (!s->is_stopping) /* else both stop, and each completes its connections */
            take_back(s);
    } else if (what == NJ_MESSAGE_END && u->state == NJ_UPGRADE_YIELDS) {
        nj__upgrade_send(u->peer_fd, NJ_MESSAGE_END_SEEN, NULL, 0);
    } else if (what == NJ_MESSAGE_END && u->state == NJ_UPGRADE_TAKES) {
        u->state = NJ_UPGRADE_LAST;
        u->announced_at = now;
        nj__server_set_lcore_phase(s, NJ_PHASE_KEEP);
    } else if (what == NJ_MESSAGE_END_SEEN && u->state == NJ_UPGRADE_YIELDS) {
        u->has_confirmed_end = true;
    } else {
        be_alone(s); /* closed, or not in this state */
    }
}

static void receive_all(struct nj_server *s, nj_ns now)
{
    struct nj_upgrade *u = &s->upgrade;
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
            handle_message(s, what, fds, n_fds, now);
    } while (what != NJ_MESSAGE_NONE);
}

void nj__server_tick_upgrade(struct nj_server *s, nj_ns now)
{
    struct nj_upgrade *u = &s->upgrade;

    receive_all(s, now);
    /* The process that starts may still take over, until this one ends. */
    if (s->is_stopping && is_starting(u) && !u->waits_no_longer && now >= u->stop_waits_until) {
        u->waits_no_longer = true;
        nj__server_set_lcore_phase(s, NJ_PHASE_DRAIN);
    }
    if (u->listen_fd >= 0 && !s->is_stopping && u->state != NJ_UPGRADE_YIELDS)
        accept_process(s, now);
}

void nj__server_stop_in_upgrade(struct nj_server *s, nj_ns now)
{
    struct nj_upgrade *u = &s->upgrade;

    if (u->state == NJ_UPGRADE_YIELDS)
        return; /* as before, with the deadline of a stop */
    if (u->state == NJ_UPGRADE_TAKES &&
        nj__upgrade_send(u->peer_fd, NJ_MESSAGE_GIVE_BACK, NULL, 0)) {
        u->state = NJ_UPGRADE_YIELDS;
        nj__server_set_lcore_phase(s, NJ_PHASE_YIELD);
        return;
    }
    if (is_starting(u)) { /* until it takes over, this process serves as before */
        u->stop_waits_until = now + nj_min_u64(START_ENDS, (s->deadline - now) / 2);
        return;
    }
    nj__server_set_lcore_phase(s, NJ_PHASE_DRAIN);
}

bool nj__server_may_end_upgrade(struct nj_server *s, nj_ns now)
{
    struct nj_upgrade *u = &s->upgrade;

    if (is_starting(u) && !u->waits_no_longer)
        return false;
    if (u->state != NJ_UPGRADE_YIELDS)
        return true;
    if (!u->has_announced_end) {
        u->has_announced_end = nj__upgrade_send(u->peer_fd, NJ_MESSAGE_END, NULL, 0);
        u->announced_at = now;
    }
    bool may_end = u->has_confirmed_end || now - u->announced_at > CONFIRM_IN;
    for (uint32_t k = 0; may_end && k < s->n_ports; k++)
        nj_dpdk_port_detach_queues(&s->port[k].dev);
    return may_end;
}

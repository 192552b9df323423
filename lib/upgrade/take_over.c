/* SPDX-License-Identifier: BSD-3-Clause */
/* The new process, while it starts: it takes over from the running one. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/set_error.h"
#include "dpdk/eal.h"
#include "dpdk/peer_channel.h"
#include "dpdk/port.h"
#include "log/log.h"
#include "upgrade/upgrade.h"

/* Without its MAC address among the arguments net_tap would give the interface another one, and so
 * cut the connections of the running server. */
static void keep_tap_macs(struct nj_upgrade *u, int argc, char **argv)
{
    uint32_t n = 0;

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (n < NJ_SERVER_PORTS_MAX &&
            nj_eal_tap_with_mac_of_interface(argv[i], u->tap_arg[n], sizeof u->tap_arg[n]))
            argv[i] = u->tap_arg[n++];
}

/* The reason is in errno. */
static int set_socket_error(const char *path, char *why, size_t n)
{
    return nj_set_error(why, n, "--upgrade-socket %s: %s", path,
                        errno == ENOTSOCK
                            ? "something else than a socket exists there; name another path"
                            : strerror(errno));
}

/* Can this process use the port beside the running one? */
static int check_port(const struct nj_port_description *p, int32_t pid, const char *path, char *why,
                      size_t n)
{
    /* net_af_packet makes the number of its group of sockets (packet(7), PACKET_FANOUT) from these
     * bits of the process id. In the same group each frame would reach one process only. */
    if (strcmp(p->driver, "net_af_packet") == 0 && ((pid ^ getpid()) & 0xffff) == 0)
        return nj_set_error(why, n,
                            "--upgrade-socket %s: the running server has process id %d and this "
                            "one %d: start it again, in the same PID namespace",
                            path, pid, getpid());
    if (!p->shareable)
        return nj_set_error(why, n,
                            "--upgrade-socket %s: process %d uses %s (%s), which two processes "
                            "cannot use at once: see \"Upgrade\" in docs/deploy.md",
                            path, pid, p->name, p->driver);
    return 0;
}

static int read_description(struct nj_upgrade *u, char *why, size_t n)
{
    struct nj_upgrade_description *d = &u->running;
    const char *path = u->file.path;
    int rc = 0;

    if (!nj__upgrade_receive_description(u->peer_fd, d))
        return nj_set_error(
            why, n,
            errno == EPROTO
                ? "--upgrade-socket %s: the running server has another protocol of upgrades: "
                  "stop it, and then start this one"
                : "--upgrade-socket %s: the running server does not answer",
            path);
    if (d->busy)
        return nj_set_error(
            why, n,
            d->busy == NJ_BUSY_STARTING
                ? "--upgrade-socket %s: another process is about to take over from process "
                  "%d: try again later (after a minute, if that process hangs)"
                : "--upgrade-socket %s: another upgrade is not complete: process %d takes "
                  "over, and the one before it still has connections",
            path, d->pid);
    for (uint32_t k = 0; rc == 0 && k < d->n_ports; k++)
        rc = check_port(&d->port[k], d->pid, path, why, n);
    return rc;
}

int nj_upgrade_contact(struct nj_upgrade *u, int argc, char **argv, char *why, size_t n)
{
    if (!u->file.path)
        return 0;
    u->peer_fd = nj__upgrade_connect(u->file.path);
    if (u->peer_fd == -1)
        return 0;
    if (u->peer_fd < 0)
        return set_socket_error(u->file.path, why, n);
    if (read_description(u, why, n) != 0) {
        nj__upgrade_close_fd(&u->peer_fd);
        return -1;
    }
    u->state = NJ_UPGRADE_CONTACTED;
    keep_tap_macs(u, argc, argv);
    nj_log(NJ_LEVEL_INFO, "upgrade: nightjar %s runs as process %d", u->running.version,
           u->running.pid);
    return 0;
}

static bool has_addrs_of(const struct nj_port_description *ours,
                         const struct nj_port_description *running)
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
static int compare_ports(const struct nj_upgrade *u, char *why, size_t n)
{
    const struct nj_upgrade_description *running = &u->running;
    struct nj_upgrade_description ours;
    const char *differs = NULL;
    uint32_t k = 0;

    nj__upgrade_describe(u->port, u->n_ports, &ours);
    if (ours.n_ports != running->n_ports)
        differs = "number of ports";
    for (; !differs && k < ours.n_ports; k++) {
        const struct nj_port_description *a = &ours.port[k], *b = &running->port[k];
        differs = strcmp(a->driver, b->driver) != 0            ? "driver"
                  : memcmp(a->mac, b->mac, sizeof a->mac) != 0 ? "interface or MAC address"
                  : a->vlan != b->vlan                         ? "--vlan"
                  : !has_addrs_of(a, b)                        ? "set of addresses (--addr)"
                                                               : NULL;
    }
    return !differs ? 0
                    : nj_set_error(why, n,
                                   "upgrade: port %u has another %s than in process %d, which "
                                   "would lose its connections",
                                   k > 0 ? k - 1 : 0, differs, running->pid);
}

/* The reason is in errno. */
static int set_listen_error(const char *path, const char *user, char *why, size_t n)
{
    if ((errno == EACCES || errno == EPERM) && user[0])
        return nj_set_error(
            why, n,
            "--upgrade-socket %s: user %s cannot make a socket there: chown %s its folder, or "
            "choose another user with --user",
            path, user, user);
    return set_socket_error(path, why, n);
}

/* As root, a change of the owner of the socket by path could be led to another file by whoever owns
 * the folder: so the process changes its user before. */
int nj_upgrade_listen(struct nj_upgrade *u, const char *user, char *why, size_t n)
{
    const char *path = u->file.path;

    if (!path || u->listen_fd >= 0)
        return 0;
    int other = nj__upgrade_connect(path);
    if (other >= 0) {
        close(other);
        return nj_set_error(
            why, n,
            "--upgrade-socket %s: another process has started meanwhile: start this one again",
            path);
    }
    for (uint32_t k = 0; k < u->n_ports; k++)
        if (!u->port[k].dev->is_shareable) {
            nj_log(NJ_LEVEL_WARNING,
                   "--upgrade-socket: two processes cannot use %s (%s) at once: no process can "
                   "take over from this one",
                   u->port[k].dev->name, u->port[k].dev->driver);
            break;
        }
    u->listen_fd = nj__upgrade_listen(path);
    if (u->listen_fd < 0)
        return set_listen_error(path, user, why, n);
    nj__socket_file_remember(&u->file);
    return 0;
}

static int set_answer_error(const struct nj_upgrade *u, char *why, size_t n)
{
    return nj_set_error(why, n, "upgrade: process %d does not answer, or goes on without this one",
                        u->running.pid);
}

/* The server that ran before has ended, without a message: this one starts alone. */
static void start_alone(struct nj_upgrade *u)
{
    nj__upgrade_close_fd(&u->peer_fd);
    u->state = NJ_UPGRADE_NONE;
    nj_log(NJ_LEVEL_WARNING, "upgrade: process %d has ended, and its connections are lost",
           u->running.pid);
}

int nj_upgrade_agree(struct nj_upgrade *u, const struct nj_upgrade_port *port, uint32_t n_ports,
                     char *why, size_t why_bytes)
{
    int theirs[NJ_SERVER_PORTS_MAX];
    uint32_t n = 0, n_fds = 1;
    enum nj_upgrade_message answer;
    bool ok = true;

    memcpy(u->port, port, n_ports * sizeof *port);
    u->n_ports = n_ports;
    if (u->state != NJ_UPGRADE_CONTACTED)
        return 0;
    if (compare_ports(u, why, why_bytes) != 0)
        return -1;
    for (; ok && n < n_ports; n++) {
        int both[2] = {-1, -1};
        ok = nj_peer_channel_open(both);
        u->channel[n] = *u->port[n].channel = both[0];
        theirs[n] = both[1];
    }
    if (ok) /* if that fails, the answer says why */
        (void)nj__upgrade_send(u->peer_fd, NJ_MESSAGE_AGREE, theirs, n);
    while (n > 0)
        nj__upgrade_close_fd(&theirs[--n]);
    answer = ok ? nj__upgrade_receive(u->peer_fd, true, &u->listen_fd, &n_fds) : NJ_MESSAGE_NONE;
    if (answer == NJ_MESSAGE_CLOSED) {
        start_alone(u);
        return 0;
    }
    if (answer != NJ_MESSAGE_AGREED || n_fds != 1)
        return set_answer_error(u, why, why_bytes);
    u->state = NJ_UPGRADE_AGREED;
    nj__socket_file_remember(&u->file);
    return 0;
}

int nj_upgrade_begin(struct nj_upgrade *u, char *why, size_t n)
{
    uint32_t n_fds = 1;
    int changes = -1;

    if (u->state != NJ_UPGRADE_AGREED)
        return 0;
    (void)nj__upgrade_send(u->peer_fd, NJ_MESSAGE_BEGIN, NULL, 0);
    enum nj_upgrade_message answer = nj__upgrade_receive(u->peer_fd, true, &changes, &n_fds);
    if (answer == NJ_MESSAGE_BEGUN)
        u->has_changes = n_fds == 1 && u->hooks.read_changes(u->hooks.ctx, changes);
    if (answer == NJ_MESSAGE_BEGUN && !u->has_changes)
        nj_log(NJ_LEVEL_WARNING, "upgrade: blocks and changed limits of the other process did not "
                                 "come; they have to be made again");
    if (n_fds == 1)
        nj__upgrade_close_fd(&changes);
    if (answer == NJ_MESSAGE_CLOSED) {
        start_alone(u);
        u->hooks.set_phase(u->hooks.ctx, NJ_PHASE_RUN);
        return 0;
    }
    if (answer != NJ_MESSAGE_BEGUN)
        return set_answer_error(u, why, n);
    u->state = NJ_UPGRADE_TAKES;
    nj_log(NJ_LEVEL_INFO, "upgrade: took over from process %d, which completes its connections",
           u->running.pid);
    return 0;
}

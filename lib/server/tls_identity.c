/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates are read at the start and at each reload (RFC 8446). */
#include "server/tls_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/set_error.h"
#include "log/log.h"
#include "threads/os_clock.h"
#include "tls/cert_dates.h"

#define TICKET_KEY_PERIOD (NJ_TLS_TICKET_PERIOD_S * NJ_SEC)
#define DATES_PERIOD_S    60 /* between two checks whether a certificate expires soon */

/* --- the log of secrets ---------------------------------------------------------------------- */

/* Opens the file, which only our user may own and read. Returns a descriptor, or -1 and the reason
 * in `problem`. */
static int open_private(const char *path, const char **problem)
{
    /* O_NONBLOCK: a FIFO without a reader is an error. It has no effect on regular files. */
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    struct stat st;

    if (fd < 0) {
        *problem = errno == ELOOP ? "it is a symbolic link: name the file itself" : strerror(errno);
        return -1;
    }
    if (fstat(fd, &st) != 0)
        *problem = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        *problem = "it is not a regular file";
    else if (st.st_uid != geteuid())
        *problem = "it belongs to another user, who could read it: remove it";
    else if ((st.st_mode & 077) != 0 && fchmod(fd, 0600) != 0)
        *problem = strerror(errno);
    else
        return fd;
    close(fd);
    return -1;
}

static int open_keylog(struct nj_tls_identity *t, const struct nj_server_config *c, char *why,
                       size_t why_bytes)
{
    const char *problem = "";

    if (!c->tls_keylog)
        return 0;
    t->keylog = open_private(c->tls_keylog, &problem);
    if (t->keylog < 0)
        return nj_set_error(why, why_bytes, "--keylog %s: %s", c->tls_keylog, problem);
    nj_log(
        NJ_LEVEL_WARNING,
        "--keylog: the secrets of all TLS connections are written to %s. Whoever reads this file "
        "can decrypt them",
        c->tls_keylog);
    return 0;
}

/* Appends the line in one call, so that lines of several workers do not mix. A disk that is full
 * loses lines. */
static void write_secret(void *identity, const char *line)
{
    const struct nj_tls_identity *t = identity;
    const struct iovec part[] = {{(char *)(uintptr_t)line, strlen(line)}, {"\n", 1}};

    (void)!writev(t->keylog, part, 2);
}

/* --- keys of session tickets ----------------------------------------------------------------- */

static bool add_ticket_key(struct nj_tls_ticket_keys *k,
                           void (*add)(struct nj_tls_ticket_keys *, const uint8_t *))
{
    uint8_t random[sizeof(struct nj_tls_ticket_key)];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    add(k, random);
    explicit_bzero(random, sizeof random);
    return true;
}

void nj__tls_identity_rotate_tickets(struct nj_tls_identity *t, nj_ns now)
{
    if (!t->has_tls || now < t->tickets_rotate_at)
        return;
    t->tickets_rotate_at = now + TICKET_KEY_PERIOD;
    add_ticket_key(&t->tickets, nj_tls_ticket_keys_rotate);
}

/* --- certificates ---------------------------------------------------------------------------- */

static int64_t unix_s(void)
{
    return (int64_t)time(NULL);
}

/* Reads the files of the configuration. */
static int read_context(struct nj_tls_identity *t, const struct nj_settings *from,
                        struct nj_tls_server_context **to, char *why, size_t n_why)
{
    const struct nj_tls_server_config running = {.unix_s = unix_s,
                                                 .tickets = &t->tickets,
                                                 .keylog = t->keylog >= 0 ? write_secret : NULL,
                                                 .keylog_ctx = t};

    return nj_settings_read_tls(from, &running, to, why, n_why);
}

static void log_dates(const struct nj_tls_server_context *context, int64_t before_s, int64_t now_s)
{
    struct nj_tls_date_note note;
    uint32_t at = 0;

    while (nj_tls_dates_next(context, &at, before_s, now_s, &note))
        nj_log(NJ_LEVEL_WARNING, "TLS: %s: %s", note.path, note.text);
}

void nj__tls_identity_check_dates(struct nj_tls_identity *t, int64_t now_s)
{
    if (!t->has_tls || now_s / DATES_PERIOD_S == t->dates_checked_s / DATES_PERIOD_S)
        return;
    struct nj_tls_server_context *context = nj_tls_current_context_take(&t->current);
    log_dates(context, t->dates_checked_s, now_s);
    nj_tls_server_context_put(context);
    t->dates_checked_s = now_s;
}

int nj__tls_identity_open(struct nj_tls_identity *t, const struct nj_settings *settings, char *why,
                          size_t why_bytes)
{
    struct nj_tls_server_context *context = NULL;

    t->asks_clients = nj_settings_ask_clients(settings);
    t->keylog = -1;
    if (!settings->config->tls_cert[0])
        return 0;
    if (!add_ticket_key(&t->tickets, nj_tls_ticket_keys_init))
        return nj_set_error(why, why_bytes, "cannot get random numbers from the system");
    if (open_keylog(t, settings->config, why, why_bytes) != 0 ||
        read_context(t, settings, &context, why, why_bytes) != 0) {
        nj__tls_identity_close(t);
        return -1;
    }
    t->dates_checked_s = unix_s();
    log_dates(context, NJ_TLS_DATES_UNTOLD, t->dates_checked_s);
    nj_tls_current_context_init(&t->current, context);
    t->tickets_rotate_at = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) + TICKET_KEY_PERIOD;
    t->has_tls = true;
    return 0;
}

/* A session of a client whose certificate another authority verified must not be resumed. */
static void forget_tickets(struct nj_tls_identity *t)
{
    for (uint32_t i = 0; i < NJ_TLS_TICKET_KEYS; i++)
        add_ticket_key(&t->tickets, nj_tls_ticket_keys_rotate);
}

int nj__tls_identity_read(struct nj_tls_identity *t, const struct nj_settings *settings,
                          struct nj_tls_server_context **next, char *why, size_t why_bytes)
{
    *next = NULL;
    return t->has_tls ? read_context(t, settings, next, why, why_bytes) : 0;
}

void nj__tls_identity_replace(struct nj_tls_identity *t, const struct nj_settings *settings,
                              struct nj_tls_server_context *next)
{
    bool asks_clients = nj_settings_ask_clients(settings),
         forgets = t->asks_clients || asks_clients;

    /* Handshakes that seal a ticket after the second call find the new context when they end
     * (nj_tls_handshake_recheck()). */
    if (forgets)
        forget_tickets(t);
    log_dates(next, NJ_TLS_DATES_UNTOLD, unix_s());
    nj_tls_current_context_replace(&t->current, next);
    if (forgets)
        forget_tickets(t);
    t->asks_clients = asks_clients;
    nj_log(NJ_LEVEL_INFO, "TLS: certificates were read again");
}

void nj__tls_identity_close(struct nj_tls_identity *t)
{
    if (t->has_tls)
        nj_tls_current_context_fini(&t->current);
    t->has_tls = false;
    nj_tls_ticket_keys_wipe(&t->tickets);
    if (t->keylog >= 0)
        close(t->keylog);
    t->keylog = -1;
}

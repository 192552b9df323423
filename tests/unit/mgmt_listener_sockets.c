/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log.h"
#include "mgmt/listener_sockets.h"
#include "support/scratch.h"

static char path[80], logged[512];

static void take_line(void *ctx, enum nj_log_level level, const char *line)
{
    snprintf(logged, sizeof logged, "%s", line);
}

static void init(void)
{
    scratch_make();
    snprintf(path, sizeof path, "%s/socket", scratch);
    nj_log_set_sink((struct nj_log_sink){take_line, NULL});
}

TestSuite(mgmt_listener_sockets, .init = init, .fini = scratch_remove);

static struct nj_mgmt_sockets make(bool is_default)
{
    struct nj_mgmt_sockets s;

    nj_mgmt_sockets_init(&s, path, is_default);
    cr_assert_eq(nj_mgmt_sockets_open_wake(&s, logged, sizeof logged), 0);
    return s;
}

static int bind_and_publish(struct nj_mgmt_sockets *s, char *why, size_t n)
{
    return nj_mgmt_sockets_bind_unix(s, "nobody", why, n) == 0 &&
                   nj_mgmt_sockets_publish(s, why, n) == 0
               ? 0
               : -1;
}

static bool answers(void)
{
    int fd = nj_socket_path_connect(path, SOCK_STREAM, 1);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static uint32_t n_files(void)
{
    char new[96];
    snprintf(new, sizeof new, "%s.new", path);
    return (access(path, F_OK) == 0) + (access(new, F_OK) == 0);
}

Test(mgmt_listener_sockets, a_socket_and_its_end)
{
    struct nj_mgmt_sockets s = make(false);
    struct stat st;
    char why[256] = "";

    cr_assert_eq(nj_mgmt_sockets_bind_unix(&s, "", why, sizeof why), 0, "%s", why);
    cr_expect_not(answers()); /* not under this name yet */
    cr_assert_eq(nj_mgmt_sockets_publish(&s, why, sizeof why), 0, "%s", why);
    cr_expect(answers());
    cr_assert_eq(lstat(path, &st), 0);
    cr_expect_eq(st.st_mode, S_IFSOCK | 0660, "%o", st.st_mode);
    cr_expect_eq(n_files(), 1);
    nj_mgmt_sockets_close(&s);
    nj_mgmt_sockets_close(&s);
    cr_expect_eq(n_files(), 0);
}

/* Whatever the umask, which belongs to all threads and stays as it is. */
Test(mgmt_listener_sockets, only_its_user_may_use_a_new_socket)
{
    struct stat st;
    mode_t was = umask(0);
    int fd = nj_socket_path_listen(path, SOCK_STREAM, 1);

    cr_assert_geq(fd, 0);
    cr_assert_eq(lstat(path, &st), 0);
    cr_expect_eq(st.st_mode, S_IFSOCK | 0600, "%o", st.st_mode);
    cr_expect_eq(umask(was), 0);
    close(fd);
}

/* In an upgrade, too, the start fails before another process yields to this one. */
Test(mgmt_listener_sockets, nothing_that_wakes)
{
    struct rlimit limit, none;
    struct nj_mgmt_sockets s;
    char why[256] = "";

    nj_mgmt_sockets_init(&s, path, false);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int rc = nj_mgmt_sockets_open_wake(&s, why, sizeof why);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_expect_eq(rc, -1);
    cr_expect(strstr(why, "Too many open files"), "%s", why);
    nj_mgmt_sockets_close(&s);
}

Test(mgmt_listener_sockets, nothing_is_left_of_a_start_that_failed)
{
    struct nj_mgmt_sockets s = make(false);
    char why[256] = "";

    cr_assert_eq(nj_mgmt_sockets_bind_unix(&s, "", why, sizeof why), 0, "%s", why);
    nj_mgmt_sockets_close(&s);
    cr_expect_eq(n_files(), 0);
}

Test(mgmt_listener_sockets, a_stale_socket_is_replaced)
{
    struct nj_mgmt_sockets s = make(false);
    char why[256] = "";

    int stale = nj_socket_path_listen(path, SOCK_STREAM, 1);
    close(stale);
    cr_assert_eq(bind_and_publish(&s, why, sizeof why), 0, "%s", why);
    cr_expect(answers());
    nj_mgmt_sockets_close(&s);
}

static void expect_refused(const char *part)
{
    struct nj_mgmt_sockets s = make(false), d = make(true);
    char why[256] = "";

    cr_expect_eq(bind_and_publish(&s, why, sizeof why), -1);
    cr_expect(strstr(why, "--management-socket /"), "%s", why);
    cr_expect(strstr(why, part), "%s", why);
    nj_mgmt_sockets_close(&s);
    logged[0] = '\0';
    cr_expect_eq(bind_and_publish(&d, why, sizeof why), 0);
    cr_expect_not(nj_mgmt_sockets_has_any(&d));
    cr_expect(strstr(logged, "no management socket: /"), "%s", logged);
    cr_expect(strstr(logged, part), "%s", logged);
    nj_mgmt_sockets_close(&d);
}

Test(mgmt_listener_sockets, other_files_stay)
{
    struct stat before, after;

    close(open(path, O_CREAT | O_WRONLY, 0600));
    cr_assert_eq(lstat(path, &before), 0);
    expect_refused("something else than a socket exists there");
    cr_assert_eq(lstat(path, &after), 0);
    cr_expect_eq(before.st_ino, after.st_ino);
    unlink(path);
    cr_assert_eq(symlink("/nowhere", path), 0);
    expect_refused("something else than a socket exists there");
    cr_expect_eq(n_files(), 0); /* access(2) follows the link */
    unlink(path);
}

Test(mgmt_listener_sockets, another_server_keeps_its_socket)
{
    struct nj_mgmt_sockets first = make(false);
    char why[256] = "", part[64];

    cr_assert_eq(bind_and_publish(&first, why, sizeof why), 0, "%s", why);
    snprintf(part, sizeof part, "process %ld listens there", (long)getpid());
    expect_refused(part);
    cr_expect(answers());
    nj_mgmt_sockets_close(&first);
}

Test(mgmt_listener_sockets, a_missing_folder)
{
    snprintf(path, sizeof path, "%s/missing/socket", scratch);
    expect_refused("its folder does not exist");
}

Test(mgmt_listener_sockets, a_successor_takes_the_path)
{
    struct nj_mgmt_sockets first = make(false), next = make(false), other = make(true);
    char why[256] = "";

    cr_assert_eq(bind_and_publish(&first, why, sizeof why), 0, "%s", why);
    other.is_taken_over = next.is_taken_over = true;
    other.taken_from = getpid() + 1; /* the default path is of another server */
    cr_expect_eq(bind_and_publish(&other, why, sizeof why), 0);
    cr_expect_not(nj_mgmt_sockets_has_any(&other));
    next.taken_from = getpid();
    cr_assert_eq(nj_mgmt_sockets_bind_unix(&next, "", why, sizeof why), 0, "%s", why);
    cr_expect(nj_socket_path_is_same(path, &first.file));
    cr_assert_eq(nj_mgmt_sockets_publish(&next, why, sizeof why), 0, "%s", why);
    cr_expect(nj_socket_path_is_same(path, &next.file));
    nj_mgmt_sockets_close(&first);
    cr_expect(answers());
    nj_mgmt_sockets_close(&next);
    cr_expect_eq(n_files(), 0);
    nj_mgmt_sockets_close(&other);
}

Test(mgmt_listener_sockets, it_is_made_again)
{
    struct nj_mgmt_sockets s = make(false);
    char why[256] = "";

    cr_assert_eq(bind_and_publish(&s, why, sizeof why), 0, "%s", why);
    nj_mgmt_sockets_repair(&s);
    nj_mgmt_sockets_repair(&s);
    cr_expect_lt(s.repaired_fd, 0);
    unlink(path);
    nj_mgmt_sockets_repair(&s);
    cr_expect_eq(n_files(), 0); /* it may be replaced right now */
    nj_mgmt_sockets_repair(&s);
    cr_expect(answers());
    nj_mgmt_sockets_take_repaired(&s);
    cr_expect_lt(s.repaired_fd, 0);
    cr_expect(strstr(logged, "is there again"), "%s", logged);
    nj_mgmt_sockets_close(&s);
    cr_expect_eq(n_files(), 0);
    nj_mgmt_sockets_repair(&s);
    nj_mgmt_sockets_repair(&s);
    cr_expect_eq(n_files(), 0);
}

static struct nj_mgmt_sockets bind_tcp(const struct nj_management_address *a, bool is_shared,
                                       bool may_be_shared, int *rc)
{
    struct nj_mgmt_sockets s;
    char why[256] = "";

    nj_mgmt_sockets_init(&s, NULL, false);
    *rc = nj_mgmt_sockets_bind_tcp(&s, a, 1, is_shared, may_be_shared, why, sizeof why);
    if (*rc == 0)
        *rc = nj_mgmt_sockets_publish(&s, why, sizeof why);
    return s;
}

/* A port of this process, which nobody else binds meanwhile. */
static void choose_port(struct nj_management_address *a)
{
    cr_assert(nj_management_address_parse("127.0.0.1:1", a));
    a->port = (uint16_t)(20000 + getpid() % 10000);
}

Test(mgmt_listener_sockets, only_a_successor_shares_a_port)
{
    struct nj_management_address a;
    int rc;

    choose_port(&a);
    struct nj_mgmt_sockets first = bind_tcp(&a, false, true, &rc);
    cr_assert_eq(rc, 0);
    struct nj_mgmt_sockets other = bind_tcp(&a, false, true, &rc);
    cr_expect_eq(rc, -1);
    struct nj_mgmt_sockets next = bind_tcp(&a, true, true, &rc);
    cr_expect_eq(rc, 0);
    /* What the one before does when it yields, and when it does so no longer. */
    cr_expect_eq(shutdown(first.tcp[0].fd, SHUT_RD), 0);
    cr_expect_eq(listen(first.tcp[0].fd, 1), 0);
    nj_mgmt_sockets_close(&first);
    nj_mgmt_sockets_close(&other);
    nj_mgmt_sockets_close(&next);
}

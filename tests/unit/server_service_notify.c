/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment that a service manager sets, and when messages of the watchdog are due. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "server/service_notify.h"

static struct nj_service_notify n;
static char why[256], logged[256];

static int open_with(const char *socket, const char *usec, const char *pid)
{
    const struct nj_service_variables v = {socket, usec, pid};

    why[0] = '\0';
    return nj_service_notify_open(&n, &v, why, sizeof why);
}

/* The manager's socket, of the abstract namespace. Writes its address to `text`. */
static int manager(char *text, size_t size)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    socklen_t bytes = sizeof at;

    cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at.sun_family),
                 0); /* the kernel names it */
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    snprintf(text, size, "@%.*s", (int)(bytes - sizeof at.sun_family - 1), at.sun_path + 1);
    return fd;
}

Test(server_service_notify, without_a_manager)
{
    cr_expect_eq(open_with(NULL, "1000000", NULL), 0);
    cr_expect_eq(n.fd, -1);
    cr_expect_not(nj_service_watchdog_is_due(&n, NJ_SEC));
    nj_service_notify_send(&n, "READY=%d", 1);
    cr_expect_eq(open_with("", NULL, NULL), 0);
    cr_expect_eq(n.fd, -1);
}

Test(server_service_notify, invalid_variables)
{
    char text[200];

    memset(text, 'x', sizeof text);
    text[0] = '/';
    text[sizeof n.address.sun_path] = '\0';
    const char *const invalid[] = {"x", "relative/path", "@", "/", "vsock:1:2", text};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        cr_expect_eq(open_with(invalid[i], NULL, NULL), -1, "%s", invalid[i]);
        cr_expect_eq(n.fd, -1);
        cr_expect(strstr(why, "NOTIFY_SOCKET="), "%s", why);
    }
    text[sizeof n.address.sun_path - 1] = '\0';
    cr_expect_eq(open_with(text, NULL, NULL), 0, "%s", why);
    nj_service_notify_close(&n);
}

static void keep_line(void *ctx, enum nj_log_level level, const char *line)
{
    (void)ctx;
    cr_expect_eq(level, NJ_LOG_WARNING);
    snprintf(logged, sizeof logged, "%s", line);
}

/* They concern the watchdog alone: the manager waits for READY=1. */
Test(server_service_notify, invalid_variables_of_the_watchdog)
{
    static const struct {
        const char *usec, *pid, *named;
    } cases[] = {
        {"", NULL, "WATCHDOG_USEC=:"},
        {"0", NULL, "WATCHDOG_USEC=0:"},
        {"-1", NULL, "WATCHDOG_USEC=-1:"},
        {"10s", NULL, "WATCHDOG_USEC=10s: expected microseconds"},
        {"18446744073709551615", NULL, "WATCHDOG_USEC=18446744073709551615:"},
        {"1000000", "", "WATCHDOG_PID=:"},
        {"1000000", "self", "WATCHDOG_PID=self: expected the number of a process"},
    };
    char address[128], got[64];
    int fd = manager(address, sizeof address);

    nj_log_set_sink((struct nj_log_sink){keep_line, NULL});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        logged[0] = '\0';
        cr_expect_eq(open_with(address, cases[i].usec, cases[i].pid), 0, "%s", why);
        cr_expect(strstr(logged, cases[i].named), "%s: %s", cases[i].named, logged);
        cr_expect_not(nj_service_watchdog_is_due(&n, NJ_SEC), "%s", cases[i].named);
        nj_service_notify_send(&n, "READY=1");
        cr_expect_eq(recv(fd, got, sizeof got, MSG_DONTWAIT), 7, "%s", cases[i].named);
        nj_service_notify_close(&n);
    }
    close(fd);
}

Test(server_service_notify, control_characters_in_the_status)
{
    static const char expected[] = "READY=1\nSTATUS=/a WATCHDOG=trigger b\xc3\xa9 ";
    char address[128], got[64];
    int fd = manager(address, sizeof address);

    cr_assert_eq(open_with(address, NULL, NULL), 0, "%s", why);
    nj_service_notify_send(&n, "READY=1\nSTATUS=%s", "/a\nWATCHDOG=trigger\tb\xc3\xa9\x7f");
    cr_assert_eq(recv(fd, got, sizeof got, MSG_DONTWAIT), sizeof expected - 1);
    cr_expect_arr_eq(got, expected, sizeof expected - 1);
    nj_service_notify_close(&n);
    close(fd);
}

Test(server_service_notify, a_message_and_the_watchdog)
{
    char address[128], pid[24], got[NJ_SERVICE_NOTIFY_BYTES + 1], longer[4000];
    int fd = manager(address, sizeof address);

    snprintf(pid, sizeof pid, "%d", (int)getpid());
    cr_assert_eq(open_with(address, "30000000", pid), 0, "%s", why);
    cr_expect_eq(n.watchdog_period, 15 * NJ_SEC);
    nj_service_notify_send(&n, "READY=1\nSTATUS=%s", "ready");
    cr_assert_eq(recv(fd, got, sizeof got, MSG_DONTWAIT), 20);
    cr_expect_arr_eq(got, "READY=1\nSTATUS=ready", 20);

    cr_expect(nj_service_watchdog_is_due(&n, NJ_SEC));
    nj_service_watchdog_send(&n, NJ_SEC);
    cr_assert_eq(recv(fd, got, sizeof got, MSG_DONTWAIT), 10);
    cr_expect_arr_eq(got, "WATCHDOG=1", 10);
    cr_expect_not(nj_service_watchdog_is_due(&n, 16 * NJ_SEC - 1));
    cr_expect(nj_service_watchdog_is_due(&n, 16 * NJ_SEC));

    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    nj_service_notify_send(&n, "STATUS=%s", longer);
    cr_expect_eq(recv(fd, got, sizeof got, MSG_DONTWAIT), NJ_SERVICE_NOTIFY_BYTES - 1);
    cr_expect_eq(recv(fd, got, sizeof got, MSG_DONTWAIT), -1);
    nj_service_notify_close(&n);
    nj_service_notify_close(&n);
    close(fd);
}

/* Fills the manager's socket, which nobody reads. */
static unsigned fill_socket(void)
{
    unsigned n_sent = 0;

    while (sendto(n.fd, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)&n.address,
                  n.address_bytes) == 1)
        n_sent++;
    cr_assert_eq(errno, EAGAIN);
    return n_sent;
}

/* Reads a message. "" if there is none. */
static const char *next_message(int fd)
{
    static char got[NJ_SERVICE_NOTIFY_BYTES];
    ssize_t bytes = recv(fd, got, sizeof got - 1, MSG_DONTWAIT);

    got[bytes > 0 ? bytes : 0] = '\0';
    return got;
}

/* They arrive when it reads again, in their order, and those of the watchdog stay due. */
Test(server_service_notify, a_manager_that_does_not_read, .timeout = 100)
{
    char address[128], expected[32];
    int fd = manager(address, sizeof address);

    cr_assert_eq(open_with(address, "2000000", NULL), 0, "%s", why);
    unsigned n_fill = fill_socket();
    for (unsigned i = 1; i <= 3; i++)
        nj_service_notify_send(&n, "STATUS=%u", i);
    nj_service_watchdog_send(&n, NJ_SEC);
    cr_expect(nj_service_watchdog_is_due(&n, NJ_SEC), "it was not sent");
    for (unsigned i = 0; i < n_fill; i++)
        cr_assert_str_eq(next_message(fd), "x");
    nj_service_notify_send(&n, "STATUS=4");
    for (unsigned i = 1; i <= 4; i++) {
        snprintf(expected, sizeof expected, "STATUS=%u", i);
        cr_expect_str_eq(next_message(fd), expected);
    }
    nj_service_watchdog_send(&n, NJ_SEC);
    cr_expect_str_eq(next_message(fd), "WATCHDOG=1");
    cr_expect_not(nj_service_watchdog_is_due(&n, NJ_SEC));
    nj_service_notify_close(&n);
    close(fd);
}

/* More than can wait: the first ones and the last one are kept. */
Test(server_service_notify, a_manager_that_reads_late, .timeout = 100)
{
    char address[128], expected[32];
    int fd = manager(address, sizeof address);

    cr_assert_eq(open_with(address, NULL, NULL), 0, "%s", why);
    unsigned n_fill = fill_socket();
    for (unsigned i = 1; i <= 100; i++)
        nj_service_notify_send(&n, "STATUS=%u", i);
    for (unsigned i = 0; i < n_fill; i++)
        cr_assert_str_eq(next_message(fd), "x");
    nj_service_notify_retry(&n);
    for (unsigned i = 1; i <= NJ_SERVICE_NOTIFY_WAITING; i++) {
        snprintf(expected, sizeof expected, "STATUS=%u", i < NJ_SERVICE_NOTIFY_WAITING ? i : 100);
        cr_expect_str_eq(next_message(fd), expected);
    }
    cr_expect_str_eq(next_message(fd), "");
    nj_service_notify_close(&n);
    close(fd);
}

Test(server_service_notify, the_watchdog_of_another_process)
{
    char address[128], pid[24];
    int fd = manager(address, sizeof address);

    snprintf(pid, sizeof pid, "%d", (int)getpid() + 1);
    cr_assert_eq(open_with(address, "30000000", pid), 0, "%s", why);
    cr_expect_not(nj_service_watchdog_is_due(&n, NJ_SEC));
    nj_service_notify_close(&n);
    close(fd);
}

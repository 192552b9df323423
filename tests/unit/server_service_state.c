/* SPDX-License-Identifier: BSD-3-Clause */
/* What the service manager is told, and in which order. tests/e2e/test_service.py has systemd. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/service_state.h"

static struct nj_service v;
static int manager;
static nj_ns now;

static void begin(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof at;
    char text[64];

    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    cr_assert_eq(bind(manager, (struct sockaddr *)&at, sizeof at.sun_family), 0);
    cr_assert_eq(getsockname(manager, (struct sockaddr *)&at, &bytes), 0);
    snprintf(text, sizeof text, "@%.*s", (int)(bytes - sizeof at.sun_family - 1), at.sun_path + 1);
    setenv("NOTIFY_SOCKET", text, 1);
    unsetenv("WATCHDOG_USEC");
    snprintf(v.ready, sizeof v.ready, "ready: all");
    now = NJ_SEC;
    nj__service_open(&v, true);
}

static void end(void)
{
    nj_service_notify_close(&v.notify);
    close(manager);
}

TestSuite(server_service_state, .init = begin, .fini = end);

/* The next message; "" if there is none. */
static const char *message(void)
{
    static char text[NJ_SERVICE_NOTIFY_BYTES];
    ssize_t n = recv(manager, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

static const char *after_tick(bool has_tentative_addresses, int stuck_lcore)
{
    now += NJ_MS;
    nj__service_tick(&v, has_tentative_addresses, stuck_lcore, 2, now);
    return message();
}

Test(server_service_state, it_is_ready_when_its_addresses_are)
{
    cr_expect_str_eq(message(), "STATUS=starting");
    cr_expect_str_eq(after_tick(true, -1), "");
    nj__service_reloading(&v); /* nobody was told that it runs */
    cr_expect_str_eq(message(), "");
    cr_expect_str_eq(after_tick(false, -1), "READY=1\nSTATUS=ready: all");
    cr_expect_str_eq(after_tick(false, -1), "");
}

Test(server_service_state, it_is_ready_after_some_seconds_without_a_link)
{
    message();
    cr_expect_str_eq(after_tick(true, -1), "");
    now += 5 * NJ_SEC;
    cr_expect_str_eq(after_tick(true, -1), "READY=1\nSTATUS=ready: all");
}

Test(server_service_state, an_lcore_that_does_not_poll)
{
    message();
    after_tick(false, -1);
    cr_expect_str_eq(after_tick(false, 3), "STATUS=lcore 3 does not poll");
    cr_expect_str_eq(after_tick(false, 3), "");
    nj__service_yields(&v, true, 1); /* that is the lesser news */
    cr_expect_str_eq(message(), "");
    cr_expect_str_eq(after_tick(false, -1),
                     "READY=1\nSTATUS=another process takes new connections: 2 connections open");
}

Test(server_service_state, a_reload)
{
    message();
    after_tick(false, -1);
    nj__service_reloading(&v);
    cr_expect_eq(strncmp(message(), "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
    nj__service_reloaded(&v, false, 0);
    cr_expect(strstr(message(), "the former one is in force"));
    nj__service_reloaded(&v, true, 0);
    cr_expect_str_eq(message(), "READY=1\nSTATUS=ready: all");
}

Test(server_service_state, after_the_stop_it_is_not_ready_again)
{
    message();
    after_tick(false, -1);
    nj__service_stopping(&v, 5 * NJ_SEC, 1);
    cr_expect_str_eq(
        message(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=20000000\nSTATUS=stopping: 1 connection open");
    nj__service_yields(&v, true, 1);
    nj__service_reloading(&v);
    nj__service_reloaded(&v, true, 1);
    cr_expect_str_eq(message(), "");
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines about a port, and when they are written. */
#include <criterion/criterion.h>
#include <string.h>

#include "log/port_health_log.h"

static struct nj_port_watch w;
static struct nj_port_stats sample;
static enum nj_log level;
static char line[NJ_PORT_LINE_BYTES];
static nj_ns now;

static void init(void)
{
    nj_port_watch_init(&w, "0000:03:00.0", 1000);
    sample = (struct nj_port_stats){.link_up = true};
    now = NJ_SEC;
}

TestSuite(log_port_health_log, .init = init);

/* The only line of a check; "": none. */
static const char *look(void)
{
    nj_port_watch_update(&w, &sample, now);
    now += NJ_PORT_WATCH_PERIOD;
    if (!nj_port_watch_next_line(&w, now, &level, line))
        return "";
    char other[NJ_PORT_LINE_BYTES];
    enum nj_log other_level;
    cr_expect(!nj_port_watch_next_line(&w, now, &other_level, other), "%s", other);
    return line;
}

Test(log_port_health_log, a_port_that_works_says_nothing)
{
    for (unsigned i = 0; i < 100; i++) {
        sample.tx_given += 100000;
        sample.tx_packets = sample.tx_given - 1000; /* the packets in the rings */
        cr_expect_str_eq(look(), "");
    }
}

Test(log_port_health_log, link)
{
    cr_expect_str_eq(look(), "");
    now += NJ_PORT_WATCH_LINK_GRACE;
    sample.link_up = false;
    cr_expect_str_eq(look(), "0000:03:00.0: the link is down");
    cr_expect_eq(level, NJ_LEVEL_WARNING);
    cr_expect_str_eq(look(), "");
    sample.link_up = true;
    sample.mbps = 10000;
    cr_expect_str_eq(look(), "0000:03:00.0: the link is up, 10000 Mbit/s");
    cr_expect_eq(level, NJ_LEVEL_INFO);
    sample.link_up = false;
    look();
    sample.link_up = true;
    sample.mbps = 0;
    cr_expect_str_eq(look(), "0000:03:00.0: the link is up");
}

/* A copper link needs seconds after the start. */
Test(log_port_health_log, a_link_that_comes_up_after_the_start)
{
    sample.link_up = false;
    for (unsigned i = 0; i < 4; i++)
        cr_expect_str_eq(look(), "");
    sample.link_up = true;
    cr_expect_str_eq(look(), "");
}

Test(log_port_health_log, a_link_that_is_never_up)
{
    sample.link_up = false;
    for (unsigned i = 0; i < 4; i++)
        cr_expect_str_eq(look(), "");
    cr_expect_str_eq(look(), "0000:03:00.0: the link is down");
    cr_expect_str_eq(look(), "");
}

Test(log_port_health_log, what_came_before_the_first_look_is_no_news)
{
    sample.rx_missed = sample.rx_nombuf = sample.rx_errors = 1000;
    cr_expect_str_eq(look(), "");
    cr_expect_str_eq(look(), "");
}

Test(log_port_health_log, a_device_whose_count_cannot_be_compared)
{
    sample.tx_packets = UINT64_MAX;
    for (unsigned i = 0; i < 30; i++) {
        sample.tx_given += 1000;
        cr_expect_str_eq(look(), "");
    }
}

Test(log_port_health_log, drops_are_counted_and_told_every_ten_seconds)
{
    look();
    sample.rx_missed = 7;
    cr_expect(strstr(look(), "0000:03:00.0: 7 received packets were dropped because the receive "
                             "rings were full"));
    cr_expect_eq(level, NJ_LEVEL_WARNING);
    for (unsigned i = 0; i < 9; i++) {
        sample.rx_missed++;
        cr_expect_str_eq(look(), "");
    }
    sample.rx_missed++;
    cr_expect(strstr(look(), ": 10 received packets were dropped"), "%s", line);
    now += NJ_PORT_WATCH_LOG_GAP;
    cr_expect_str_eq(look(), "", "no news");
}

Test(log_port_health_log, each_reason_has_its_line)
{
    unsigned n = 0;

    look();
    sample.rx_missed = sample.rx_nombuf = sample.rx_errors = sample.tx_errors = 1;
    nj_port_watch_update(&w, &sample, now);
    while (nj_port_watch_next_line(&w, now, &level, line))
        n++;
    cr_expect_eq(n, 4);
}

/* As with the 82540EM, whose second queue sends nothing. */
Test(log_port_health_log, what_is_given_and_not_sent)
{
    const char *said = "";
    unsigned n_looks = 0;

    for (; n_looks < 60 && !*said; n_looks++) {
        sample.tx_given += 1000;
        sample.tx_packets += 500;
        said = look();
    }
    cr_expect(strstr(said, "packets were passed to the device and not sent"), "%s", said);
    cr_expect(n_looks >= 5 && n_looks <= 10, "%u", n_looks);
}

Test(log_port_health_log, a_link_that_is_down_sends_nothing)
{
    look();
    now += NJ_PORT_WATCH_LINK_GRACE;
    sample.link_up = false;
    look();
    for (unsigned i = 0; i < 30; i++) {
        sample.tx_given += 1000;
        sample.tx_errors += 10;
        cr_expect_str_eq(look(), "");
    }
    sample.link_up = true;
    cr_expect_str_eq(look(), "0000:03:00.0: the link is up");
    for (unsigned i = 0; i < 30; i++)
        cr_expect_str_eq(look(), "", "packets lost meanwhile are not reported");
}

/* Device counters that are late, and those of a device without any, report fewer packets. */
Test(log_port_health_log, more_sent_than_given)
{
    for (unsigned i = 0; i < 30; i++) {
        sample.tx_given += 1000;
        sample.tx_packets += 1500;
        cr_expect_str_eq(look(), "");
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns samples of port counters into log lines, rate-limited per reason. Pure: the caller samples
 * the device and passes the time. */
#include "log/port_health_log.h"

#include <stdio.h>

/* Packets handed to the device and not sent, beyond those that fit its rings, before they are
 * logged. They must persist for UNSENT_TIME, since device counters lag. */
#define UNSENT_MIN  100u
#define UNSENT_TIME (5 * NJ_SEC)

void nj_port_watch_init(struct nj_port_watch *w, const char *name, uint32_t in_flight_max)
{
    *w = (struct nj_port_watch){.in_flight_max = in_flight_max};
    snprintf(w->name, sizeof w->name, "%s", name);
}

/* Unsent packets since the last line about them. With TSO the device counts more packets than it
 * was given, and the surplus can hide losses. */
static uint64_t unsent(const struct nj_port_watch *w)
{
    const struct nj_port_stats *s = &w->seen;
    uint64_t lost = s->tx_given > s->tx_packets ? s->tx_given - s->tx_packets : 0;
    uint64_t known = w->logged[NJ__PORT_UNSENT] + w->in_flight_max;
    return lost > known ? lost - known : 0;
}

void nj_port_watch_update(struct nj_port_watch *w, const struct nj_port_stats *sample, nj_ns now)
{
    bool first = !w->has_seen;

    w->seen = *sample;
    w->has_seen = true;
    if (first) { /* neither earlier losses nor a link that is up are logged */
        w->first_at = now;
        w->link_logged = true;
        w->logged[NJ__PORT_MISSED] = sample->rx_missed;
        w->logged[NJ__PORT_NOMBUF] = sample->rx_nombuf;
        w->logged[NJ__PORT_RX_ERRORS] = sample->rx_errors;
    }
    if (!sample->link_up) { /* a link that is down explains unsent packets */
        w->logged[NJ__PORT_UNSENT] += unsent(w);
        w->logged[NJ__PORT_TX_ERRORS] = sample->tx_errors;
    }
    if (unsent(w) < UNSENT_MIN)
        w->unsent_since = 0;
    else if (w->unsent_since == 0)
        w->unsent_since = now;
}

static bool format_link_line(struct nj_port_watch *w, nj_ns now, enum nj_log *level, char *line)
{
    bool up = w->seen.link_up;

    if (up == w->link_logged || (!up && now - w->first_at < NJ_PORT_WATCH_LINK_GRACE))
        return false;
    w->link_logged = up;
    *level = up ? NJ_LEVEL_INFO : NJ_LEVEL_WARNING;
    if (up && w->seen.mbps > 0)
        snprintf(line, NJ_PORT_LINE_BYTES, "%s: the link is up, %u Mbit/s", w->name, w->seen.mbps);
    else
        snprintf(line, NJ_PORT_LINE_BYTES, "%s: the link is %s", w->name, up ? "up" : "down");
    return true;
}

static bool may_log_again(struct nj_port_watch *w, enum nj__port_reason reason, nj_ns now)
{
    if (w->logged_at[reason] != 0 && now - w->logged_at[reason] < NJ_PORT_WATCH_LOG_GAP)
        return false;
    w->logged_at[reason] = now;
    return true;
}

/* Logs the increase of a count. */
static bool format_count_line(struct nj_port_watch *w, enum nj__port_reason reason, uint64_t count,
                              nj_ns now, const char *what, char *line)
{
    if (count <= w->logged[reason] || !may_log_again(w, reason, now))
        return false;
    snprintf(line, NJ_PORT_LINE_BYTES, "%s: %lu %s", w->name,
             (unsigned long)(count - w->logged[reason]), what);
    w->logged[reason] = count;
    return true;
}

static bool format_unsent_line(struct nj_port_watch *w, nj_ns now, char *line)
{
    uint64_t n = unsent(w);

    if (w->unsent_since == 0 || now - w->unsent_since < UNSENT_TIME ||
        !may_log_again(w, NJ__PORT_UNSENT, now))
        return false;
    snprintf(line, NJ_PORT_LINE_BYTES,
             "%s: %lu packets were passed to the device and not sent: one of its transmit queues "
             "does not work; try fewer lcores (-l)",
             w->name, (unsigned long)n);
    w->logged[NJ__PORT_UNSENT] += n;
    w->unsent_since = 0;
    return true;
}

bool nj_port_watch_next_line(struct nj_port_watch *w, nj_ns now, enum nj_log *level,
                             char line[NJ_PORT_LINE_BYTES])
{
    const struct nj_port_stats *s = &w->seen;

    if (!w->has_seen)
        return false;
    if (format_link_line(w, now, level, line))
        return true;
    *level = NJ_LEVEL_WARNING;
    return format_count_line(
               w, NJ__PORT_MISSED, s->rx_missed, now,
               "received packets were dropped because the receive rings were full: the "
               "lcores cannot keep up (use more lcores, or a larger --rx-ring)",
               line) ||
           format_count_line(w, NJ__PORT_NOMBUF, s->rx_nombuf, now,
                             "times no receive buffer was free", line) ||
           format_count_line(
               w, NJ__PORT_RX_ERRORS, s->rx_errors, now,
               "received packets were damaged: check the cable and the MTU of the other end",
               line) ||
           format_count_line(w, NJ__PORT_TX_ERRORS, s->tx_errors, now,
                             "packets that the device failed to send", line) ||
           format_unsent_line(w, now, line);
}

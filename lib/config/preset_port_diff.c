/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares a port with the expectations of its preset: driver, binding, queues, offloads, RSS.
 * Differences are warnings. */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/set_error.h"
#include "base/text.h"
#include "config/eal_preset.h"
#include "dpdk/eal.h"
#include "log/log.h"
#include "topo/pci_driver.h"

struct lines {
    const struct nj_preset *preset;
    const struct nj_dpdk_port *port;
    char *text; /* of `n` bytes */
    size_t n;
};

/* Adds a line, which is cut at the end of the text. */
#define add_difference(l, format, ...)                                                             \
    snprintf((l)->text + strlen((l)->text), (l)->n - strlen((l)->text),                            \
             "%spreset %s: %s: expected " format, (l)->text[0] ? "\n" : "", (l)->preset->name,     \
             (l)->port->name, __VA_ARGS__)

static bool fits(const char *words, const char *word)
{
    struct nj_str rest = nj_str_of(words), w;

    while (nj_str_next_word(&rest, &w))
        if (nj_str_eq(w, nj_str_of(word)) || nj_str_eq(w, NJ_STR("any")))
            return true;
    return false;
}

/* Only PCI devices are bound to a kernel driver. */
static void compare_drivers(struct lines *l, const char *sysfs)
{
    char driver[64];

    if (!fits(l->preset->driver, l->port->driver))
        add_difference(l, "driver %s, found %s", l->preset->driver, l->port->driver);
    if (nj_pci_driver_of(sysfs, l->port->name, driver, sizeof driver) &&
        !fits(l->preset->bind, driver))
        add_difference(l, "it bound to %s, found %s", l->preset->bind, driver);
}

static void compare_queues(struct lines *l, uint32_t n_shards)
{
    const struct nj_dpdk_port *port = l->port;
    uint32_t expected = n_shards < l->preset->queues ? n_shards : l->preset->queues;

    if (port->n_rxq < expected || port->n_txq < expected)
        add_difference(l,
                       "%u queue%s per direction for %u lcore%s, found %u receive and %u transmit",
                       expected, expected == 1 ? "" : "s", n_shards, n_shards == 1 ? "" : "s",
                       port->n_rxq, port->n_txq);
}

static void compare_offloads(struct lines *l)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{NJ_PRESET_RX_CHECKSUM, "checksum offload for received packets"},
                 {NJ_PRESET_TX_CHECKSUM, "checksum offload for sent packets"},
                 {NJ_PRESET_TSO, "TSO"}};
    const struct nj_dpdk_port *port = l->port;
    uint32_t has = (port->rx_csum ? NJ_PRESET_RX_CHECKSUM : 0u) |
                   (port->tx.tcp_csum ? NJ_PRESET_TX_CHECKSUM : 0u) |
                   (port->tx.tso ? NJ_PRESET_TSO : 0u);
    uint32_t odd = (has ^ l->preset->offloads) & ~l->preset->offloads_optional;

    for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++)
        if (odd & names[i].bit)
            add_difference(l, "%s%s, the port %s", has & names[i].bit ? "no " : "", names[i].name,
                           has & names[i].bit ? "has it" : "lacks it");
}

/* RSS has no effect with one lcore, or with fewer queues than lcores. */
static void compare_rss(struct lines *l, uint32_t n_shards)
{
    const struct nj_dpdk_port *port = l->port;
    bool by_device = port->steering == NJ_STEER_ON_MISS;

    if (n_shards == 1 || n_shards > port->n_rxq)
        return;
    if (l->preset->rss == NJ_PRESET_RSS_DEVICE && !by_device)
        add_difference(l, "RSS by the device, found: %s", port->spread);
    if (l->preset->rss == NJ_PRESET_RSS_RINGS && by_device)
        add_difference(l, "no usable RSS, found: %s", port->spread);
}

void nj_presets_diff_port(const struct nj_presets *p, const struct nj_dpdk_port *port,
                          uint32_t n_shards, bool offload, const char *sysfs, char *text, size_t n)
{
    struct lines l = {.port = port, .text = text, .n = n};

    text[0] = '\0';
    for (uint32_t i = 0; i < p->n_devices; i++) {
        if (strcmp(p->device[i].name, port->name) != 0)
            continue;
        l.preset = p->device[i].preset;
        compare_drivers(&l, sysfs);
        compare_queues(&l, n_shards);
        if (offload)
            compare_offloads(&l);
        compare_rss(&l, n_shards);
    }
}

int nj_presets_check_ports_exist(const struct nj_presets *p, char *why, size_t n)
{
    const char *complaint = nj_eal_skipped_device_error();

    for (uint32_t i = 0; i < p->n_devices; i++)
        if (!nj_dpdk_device_has_port(p->device[i].name))
            return nj_set_error(why, n,
                                "preset %s: DPDK created no port for %s%s%s "
                                "(NJ_EAL_VERBOSE=1 shows all its output)",
                                p->device[i].preset->name, p->device[i].name,
                                *complaint ? ": " : "", complaint);
    return 0;
}

void nj_presets_warn_port_diff(const struct nj_presets *p, const struct nj_dpdk_port *port,
                               uint32_t n_shards, bool offload)
{
    char text[2048];

    nj_presets_diff_port(p, port, n_shards, offload, "/sys/bus/pci/devices", text, sizeof text);
    if (text[0])
        nj_log(NJ_LEVEL_WARNING, "%s", text);
}

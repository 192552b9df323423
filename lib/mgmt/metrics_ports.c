/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, by their DPDK port number: link, queues, and the packets that they lost. */
#include "mgmt/metrics_parts.h"

#define NUMBER_BYTES 12

static void add_infos(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric family = {"port", NJ__METRIC_INFO,
                                             "ports with their device, driver and MAC address, how "
                                             "packets reach the lcores, and what the "
                                             "device does for TCP"};

    nj__metrics_begin(m, &family);
    for (uint32_t k = 0; k < v->n_ports; k++) {
        const struct nj_dpdk_port *dev = v->port[k].dev;
        char id[NUMBER_BYTES], mac[RTE_ETHER_ADDR_FMT_SIZE];
        const struct nj__metric_label labels[] = {
            {"port", id}, {"device", dev->name},   {"driver", dev->driver},
            {"mac", mac}, {"spread", dev->spread}, {"offloads", dev->offloads},
            {0}};
        snprintf(id, sizeof id, "%u", dev->id);
        rte_ether_format_addr(mac, sizeof mac, &dev->mac);
        nj__metrics_add(m, 1, labels);
    }
}

void nj__metrics_ports(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"port_link_up", NJ__METRIC_GAUGE, "whether a port has a link, at most 1 s ago"},
        {"port_link_speed_bytes", NJ__METRIC_GAUGE, "bytes per second of the link of a port"},
        {"port_mtu_bytes", NJ__METRIC_GAUGE, "largest IP packet of a port"},
        {"port_rx_queues", NJ__METRIC_GAUGE, "receive queues of a port"},
        {"port_tx_queues", NJ__METRIC_GAUGE, "transmit queues of a port"},
        {"port_rx_ring_size", NJ__METRIC_GAUGE, "descriptors of a receive queue"},
        {"port_tx_ring_size", NJ__METRIC_GAUGE, "descriptors of a transmit queue"},
        {"port_rx_missed", NJ__METRIC_COUNTER,
         "packets lost by a device because its receive queue was full"},
        {"port_rx_nombuf", NJ__METRIC_COUNTER,
         "packets lost by a device because no receive mbuf was free"},
        {"port_rx_errors", NJ__METRIC_COUNTER, "damaged packets that a device received"},
        {"port_tx_errors", NJ__METRIC_COUNTER, "packets that a device did not send"},
        {"port_tx_packets", NJ__METRIC_COUNTER, "packets that a device counted as sent"},
        {"port_tx_given", NJ__METRIC_COUNTER, "packets passed to a device"},
    };
    struct nj__metric_row row[NJ_SERVER_PORTS_MAX];
    char id[NJ_SERVER_PORTS_MAX][NUMBER_BYTES];

    add_infos(v, m);
    for (uint32_t k = 0; k < v->n_ports; k++) {
        const struct nj_dpdk_port *dev = v->port[k].dev;
        struct nj_port_stats s = nj_mgmt_read_port_stats(v, &v->port[k]);
        snprintf(id[k], sizeof id[k], "%u", dev->id);
        row[k] = (struct nj__metric_row){{{"port", id[k]}},
                                         {s.link_up, s.mbps ? s.mbps * 125000ull : NJ__METRIC_NONE,
                                          dev->mtu, dev->n_rxq, dev->n_txq, dev->n_rxd, dev->n_txd,
                                          s.rx_missed, s.rx_nombuf, s.rx_errors, s.tx_errors,
                                          s.tx_packets, s.tx_given}};
    }
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), row, v->n_ports);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Run a nightjar server: one shard per EAL lcore, a folder served over HTTP/2 and HTTP/1.1.
 *
 * As the whole program:
 *
 *     struct nj_server_config c;
 *     nj_server_config_init(&c);
 *     c.addr[0] = "198.18.0.2/24";
 *     c.root = "/srv/www";
 *     return nj_server_run(eal_argc, eal_argv, &c);
 *
 * Within a program that has a main loop of its own (docs/embedding.md):
 *
 *     struct nj_server *s = nj_server_new(eal_argc, eal_argv, &c, why, sizeof why);
 *     if (!s || nj_server_start(s, why, sizeof why) != 0)
 *         ...
 *     ...
 *     nj_server_stop(s);
 *     nj_server_wait(s);
 *     nj_server_free(s);
 */
#ifndef NIGHTJAR_SERVER_H
#define NIGHTJAR_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nightjar/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NJ_API
#define NJ_API __attribute__((visibility("default")))
#endif

#define NJ_SERVER_PORTS_MAX       8  /**< ports of a server */
#define NJ_SERVER_ADDRS_MAX       32 /**< addresses of all ports */
#define NJ_SERVER_GATEWAYS_MAX    16 /**< gateways of all ports */
#define NJ_SERVER_ROUTES_MAX      32 /**< routes to networks of all ports */
#define NJ_SERVER_NEIGHBOURS_MAX  32 /**< hosts with a given MAC address of all ports */
#define NJ_SERVER_ERROR_PAGES_MAX 16 /**< error pages of a server */
#define NJ_SERVER_TLS_CERTS_MAX   16 /**< certificates of TLS */
#define NJ_SERVER_TRUSTED_MAX     16 /**< networks of trusted proxies of a server */
#define NJ_SERVER_PROXY_MAX       8  /**< ports with the PROXY protocol */
#define NJ_SERVER_MANAGEMENT_MAX  8  /**< addresses of the management listener */

/** Value of a limit of struct nj_server_config: no limit, in place of the policy file's. 0: the
 * limit of the file, and no limit if the file sets none. */
#define NJ_NONE   UINT64_MAX
#define NJ_NONE32 UINT32_MAX /**< NJ_NONE for limits of 32 bits */

/** How large files are read. */
enum nj_file_reads {
    NJ_FILE_READS_DEFAULT, /**< NJ_FILE_READS_AUTO */
    NJ_FILE_READS_AUTO,    /**< DIRECT if the kernel supports it, else THREADS */
    NJ_FILE_READS_DIRECT,  /**< io_uring, bypassing the page cache where the file system supports it
                            */
    NJ_FILE_READS_BUFFERED, /**< io_uring, through the page cache */
    NJ_FILE_READS_THREADS,  /**< by workers, through the page cache */
};

/** Symbolic links below the root. Those with an absolute target are never followed. */
enum nj_symlinks {
    NJ_SYMLINKS_DEFAULT, /**< as the policy file sets, else NJ_SYMLINKS_BENEATH */
    NJ_SYMLINKS_NONE,    /**< not followed: 404 */
    NJ_SYMLINKS_OWNER,   /**< followed if link and file have the same owner */
    NJ_SYMLINKS_BENEATH, /**< followed within the root */
};

/** The parameter charset in the content-type of text files whose type has no parameters. */
enum nj_charset {
    NJ_CHARSET_DEFAULT, /**< as the policy file sets, else NJ_CHARSET_NONE */
    NJ_CHARSET_NONE,    /**< none: clients find out */
    NJ_CHARSET_UTF_8,   /**< charset=utf-8 */
};

/** Severity of a log line. */
enum nj_log_level {
    NJ_LOG_ERROR,   /**< a failure; it may end the server */
    NJ_LOG_WARNING, /**< the server continues; the operator should look into it */
    NJ_LOG_INFO,    /**< normal operation */
};

/** Format of an access log line. */
enum nj_log_format {
    NJ_LOG_DEFAULT,  /**< as the policy file sets, else NJ_LOG_COMBINED */
    NJ_LOG_COMBINED, /**< the combined format of Apache httpd and nginx, with further fields at the
                        end */
    NJ_LOG_JSON,     /**< a JSON object (RFC 8259) */
    NJ_LOG_LOGFMT,   /**< named fields: name=value, texts of the client in quotes */
};

/** Behaviour of an lcore without work, and how long the first packet afterwards may wait. Other
 * lcores and threads wake a sleeping lcore. */
enum nj_idle {
    NJ_IDLE_SLEEP,     /**< wait for the file descriptor of net_tap and net_af_packet; with other
                          drivers sleep for 50 us, after 100 ms without work for 1 ms */
    NJ_IDLE_SPIN,      /**< poll: no packet waits, and the core is always busy */
    NJ_IDLE_PAUSE,     /**< poll every 5 us with the CPU's low-power wait instruction */
    NJ_IDLE_INTERRUPT, /**< wait for the receive interrupt; without one like NJ_IDLE_SLEEP */
};

/** Configuration of a server. Strings, routes and contexts belong to the caller, and must live
 * until nj_server_free() or the end of nj_server_run(). The struct itself is copied.
 *
 * New versions append fields only. A program that was built with an older nightjar has a shorter
 * struct; missing fields get their defaults. A program that was built with a newer nightjar works
 * with this one if the fields that this one lacks are zero. */
struct nj_server_config {
    size_t size_bytes; /**< of this struct; set by nj_server_config_init() */
    /** Ports to serve on, by port id of DPDK; none: the only port. "N", or "N=4-7" with the ids of
     * the lcores that poll it. Each lcore polls one port: ports without lcores share those that no
     * port lists.
     *
     * The link options below apply to one port, named by "@N" at the end. Without it, an address
     * belongs to the first port; a gateway, route or neighbour to the port on whose link it is; a
     * VLAN to every port. */
    const char *port[NJ_SERVER_PORTS_MAX];
    /** Our addresses: one to eight per port. The first NULL ends this list and each list below.
     * "ADDRESS/PREFIX" of IPv4 or IPv6, or "auto6": IPv6 addresses from router advertisements. A
     * port with IPv6 also gets a link-local address. */
    const char *addr[NJ_SERVER_ADDRS_MAX];
    /** Routers on a port's link, one for IPv4 and one for IPv6, in any order. Without one only the
     * link is reachable, or for IPv6 what routers advertise. */
    const char *gateway[NJ_SERVER_GATEWAYS_MAX];
    /** Networks behind another router of the link: "NETWORK/PREFIX=ROUTER", at most 16 per port.
     * The longest matching prefix wins, including those of `addr`; then the gateway. */
    const char *route[NJ_SERVER_ROUTES_MAX];
    /** Hosts of the link, possibly gateways, with a static MAC address: "ADDRESS=MAC", at most
     * seven per port. ARP and neighbour discovery are neither sent for them nor accepted. */
    const char *neighbour[NJ_SERVER_NEIGHBOURS_MAX];
    const char *vlan[NJ_SERVER_PORTS_MAX]; /**< 802.1Q VLAN id, 1..4094; none: untagged frames */
    const char *rss_key; /**< RSS key, which spreads connections over lcores: 80 hexadecimal digits;
                            default: a random one for each start */
    uint16_t mtu;        /**< of IP packets, 1280..9000 bytes; 0: the device's, at most 1500 */
    uint16_t rx_ring;    /**< descriptors of each receive queue, 64..8192; 0: 1024. Adjusted to the
                            bounds of the device */
    uint16_t tx_ring;    /**< the same for each transmit queue */
    uint16_t listen_port;          /**< TCP port; 80. Sections [listen NAME] of `policy_file` are in
                                      place of it, of `tls_port` and `proxy_protocol`, which must
                                      not be set beside them */
    const char *root;              /**< folder to serve; required without routes */
    const struct nj_route *routes; /**< handlers, tried before the folder; see handler.h */
    uint32_t n_routes;             /**< number of routes, at most NJ_ROUTES_MAX */
    uint32_t fibers_max;           /**< handlers of an lcore that can wait at once; 256 */
    enum nj_run strategy;          /**< where handlers run; NJ_RUN_EWYK */
    uint64_t cache_bytes;          /**< bytes of file contents kept in memory; 1 GiB */
    uint32_t conns_max;            /**< TCP connections per lcore; 65536 */
    double preface_timeout_s;      /**< maximum silence of a new connection; 10 */
    double idle_timeout_s;         /**< the same without a running request; 75 */
    double drain_timeout_s;        /**< maximum time of running responses after SIGTERM; 10 */
    uint32_t workers;   /**< threads for OS_BLOCKING handlers, at most 32; 0: one per CPU that the
                           lcores leave, at least 1 and at most 4 */
    bool no_offload;    /**< checksums in software, even if the device offers them; off */
    bool newreno;       /**< NewReno as congestion control instead of CUBIC; off */
    bool no_ecn;        /**< no ECN (RFC 3168) even if the peer requests it; off */
    bool serve_private; /**< if root serves, also files that other users may not read; off */
    enum nj_idle idle;  /**< behaviour of lcores without work; NJ_IDLE_SLEEP */
    bool busy_poll;     /**< NJ_IDLE_SPIN; takes precedence over `idle`; off */
    bool live; /**< nj_server_run() only: print rates every second if stderr is a terminal; off */
    /** nj_server_run() only. A crash (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS) prints a
     * backtrace on stderr before the default action of the signal. Signals for which the program
     * has handlers are not changed. Default: off. */
    bool crash_report;

    /** File of the configuration: every field that is an option, EAL arguments ([eal]), classes,
     * clients, lists and hours of the day; see nightjar.conf(5). nj_server_new() reads it, no other
     * call is needed. A field that differs from its default, or was set by nj_server_config_set(),
     * overrides the file; an array replaces that of the file, except `trusted_proxy`. Arguments of
     * nj_server_new() replace EAL arguments of the same name in the file. The struct of the program
     * is not changed. NULL: none. */
    const char *policy_file;
    /* Bytes of response bodies per second. Classes may set other limits per client and response. */
    uint64_t rate;             /**< bytes per second of response bodies, for the whole server */
    uint64_t rate_per_client;  /**< the same for one client, over all its connections */
    uint64_t rate_per_request; /**< the same for one response, after its first rate_after bytes */
    uint64_t rate_after;       /**< initial bytes of a response without rate_per_request */
    /* Per client: an IPv4 address or an IPv6 /64, unless the policy file sets another prefix. */
    uint32_t connections_per_client; /**< open TCP connections of one client */
    uint32_t streams_per_client;     /**< open requests of one client */
    uint32_t requests_per_client;    /**< requests of one client per second */

    /** Networks of trusted proxies ("10.0.0.0/8"). Their connections do not count for any client,
     * and only they may name clients in a header. The policy file may add networks. */
    const char *trusted_proxy[NJ_SERVER_TRUSTED_MAX];

    /* Requests. 0: as the policy file sets, else the default at the end of the comment. */
    uint64_t max_body;        /**< bytes of a body, more: 413; as routes set, for files unlimited */
    uint32_t max_header_size; /**< bytes as RFC 9113 6.5.2 counts, more: 431; 32 KiB, the maximum */
    uint32_t max_headers;     /**< fields, more: 431; 128, the maximum */
    double header_timeout_s;  /**< from the first byte of a header block to its last; 10 */
    double body_timeout_s;    /**< without progress of a request body; 60 */
    double send_timeout_s;    /**< without progress of a response, except while paced; 60 */
    double body_deadline_s;   /**< from a request to the end of its body, unless the response has
                                 begun; 3600 */
    uint64_t min_upload_rate; /**< minimum bytes per second of a request body, averaged over
                                 body_timeout_s, unless the response has begun; 500 */
    uint64_t min_rate;        /**< minimum bytes per second that the peer receives, averaged over
                                 send_timeout_s; a slower response is ended; none */

    /* Files. NULL and off: as the policy file sets, else the default at the end of the comment. */
    const char *index;         /**< file name for "folder/"; index.html */
    bool listing;              /**< list a folder without an index file; off */
    bool no_precompressed;     /**< do not look for name.br, .zst and .gz; off */
    const char *mime_types;    /**< a mime.types file, used before the built-in table; none */
    const char *cache_control; /**< value of that field in 200, 206 and 304; none */
    /** "404=/404.html": a file below the root as the body of a status. */
    const char *error_page[NJ_SERVER_ERROR_PAGES_MAX];
    enum nj_symlinks symlinks;     /**< symbolic links below the root */
    enum nj_file_reads file_reads; /**< how large files are read */

    const char *access_log;        /**< a file, or "-" for standard output; none */
    enum nj_log_format log_format; /**< format of its lines */

    /** Called for each log line of the server, without time and newline. The callers are threads of
     * the library, several at once, never an lcore, and threads that call the functions below. It
     * may block, which also delays the supervision of lcores. It must not call functions of this
     * header. NULL: lines are written to stderr, with time and level. */
    void (*log)(void *ctx, enum nj_log_level level, const char *line);
    void *log_ctx; /**< argument of `log` */

    /** Called on the thread of each lcore before its first step, and so before any handler runs
     * there. nj_server_start() waits for it. Use it for per-lcore state of handlers: see
     * nj_lcore_id(). NULL: none. */
    void (*lcore_init)(unsigned lcore_id, void *ctx);
    /** Called on the thread of each lcore after its last step, when all handlers there have ended.
     * NULL: none. */
    void (*lcore_fini)(unsigned lcore_id, void *ctx);
    void *lcore_ctx; /**< argument of both */

    /** Certificates of TLS: files in PEM with the server's certificate first, then those of the
     * authorities between it and a root. Each has its private key at the same index of `tls_key`.
     * The first one answers clients whose server name (SNI) no certificate has. None: no TLS. */
    const char *tls_cert[NJ_SERVER_TLS_CERTS_MAX];
    const char *tls_key[NJ_SERVER_TLS_CERTS_MAX]; /**< private keys in PEM, without a password */
    uint16_t tls_port;                            /**< TCP port of TLS, beside listen_port; 443 */
    /** Files with OCSP responses in DER, each about one of the certificates, to be stapled. */
    const char *tls_ocsp[NJ_SERVER_TLS_CERTS_MAX];
    /** Certificates of authorities in PEM: each client has to show a certificate of one of them. A
     * handler gets its subject by nj_request_client_subject(). None: clients are not asked. */
    const char *tls_client_ca;
    bool tls_client_optional; /**< accept clients without a certificate, too */
    /** A file to which the secrets of all TLS connections are appended (SSLKEYLOGFILE), to decrypt
     * captures of packets. Only together with `insecure_keylog`. */
    const char *tls_keylog;
    /** Consent to `tls_keylog`: whoever reads the file decrypts everything. */
    bool insecure_keylog;

    /** Tell the service manager of NOTIFY_SOCKET when the server is ready, reads its files again
     * and stops, and, at half of WATCHDOG_USEC, that all lcores poll: see sd_notify(3). Without
     * these variables in the environment nothing is sent. Off; the program nightjar turns it on. */
    bool service_notify;
    /** Give up what only the start needs, when the ports are open and before any request: the
     * process becomes `user` if it is root, and each of its threads loses all capabilities and gets
     * no_new_privs and a seccomp filter, also threads that the library did not start. These must
     * not block the highest real-time signal that has no handler. Files of this configuration are
     * opened after that. A server without handlers is restricted further; see docs/deploy.md. It
     * cannot be undone. Default: off; the program nightjar turns it on. */
    bool drop_privileges;
    /** With `drop_privileges`: "NAME" or "NAME:GROUP", also as numbers. "root" keeps everything,
     * with a warning. NULL: in a process of root, nightjar if there is such a user, else nobody. */
    const char *user;
    /** Path of a socket for upgrades, see docs/deploy.md. If a server listens there, this one takes
     * over from it: the other one completes its connections and ends, and this one accepts new
     * ones. Then this one listens there. The device has to be a tap or net_af_packet. NULL: none.
     */
    const char *upgrade_socket;
    double upgrade_timeout_s; /**< maximum time of running responses after another process has taken
                                 over; 3600 */

    /* Files, as `index` and what follows it. */
    const char *default_type; /**< content-type of files with an unknown extension;
                                 application/octet-stream */
    enum nj_charset charset;  /**< charset of text files */
    /** Names that begin with a dot and are served, separated by commas: ".well-known,.treeinfo";
     * "none": no name. NULL: .well-known,.treeinfo,.discinfo */
    const char *dotfiles;

    /** Refuse HTTP/1.x: 505 in the clear, and the alert no_application_protocol in TLS. Off: it is
     * spoken beside HTTP/2. */
    bool no_http1;
    /** TCP ports, of `listen_port` and `tls_port`, whose connections begin with a header of the
     * PROXY protocol, version 1 or 2 ("80"). Its source is the client of the connection. Only
     * trusted proxies may connect there, so `trusted_proxy` or the policy file must name some. */
    const char *proxy_protocol[NJ_SERVER_PROXY_MAX];

    /** Options that nj_server_config_set() has set, which then override the file also with a value
     * that is the default. Only that function writes it. */
    uint64_t set_by_name[2];

    /* For nj_server_check(). */
    const char *explain;      /**< URL: print what answers a request for it, and nothing else */
    const char *explain_from; /**< address of its client; NULL: one that is on no list */
    bool check_json;          /**< print JSON */

    /* Management: HTTP/1.1 on the kernel's network, see docs/observe.md. */
    /** Path of a Unix socket, at most 103 bytes; "none": none. Who may write to the file may do
     * everything: its mode is 0660, and it belongs to `user`. NULL: none, or see the next field. */
    const char *management_socket;
    /** With `management_socket` NULL: listen at /run/nightjar/nightjar.sock if that is possible;
     * else a line of the log says why not. Off; the program nightjar turns it on. */
    bool management_default;
    /** "ADDRESS:PORT" or "[ADDRESS]:PORT" of the kernel. At a loopback address a client with
     * a token of the files below may ask everything. Other clients, and all clients at other
     * addresses, get metrics, health and readiness only. */
    const char *management_listen[NJ_SERVER_MANAGEMENT_MAX];
    /** A file whose first line is a token of 16 to 512 characters, which permits everything. Other
     * users must not be able to read it. nj_server_reload() reads it again. NULL: none. */
    const char *management_token;
    const char *management_read_token; /**< the same, for reading only */
    double ready_stall_s; /**< an lcore that has not polled for so long makes /ready fail; 0.3 */
};

/**
 * Set the defaults in a struct of `size_bytes`. Programs call nj_server_config_init().
 *
 * Context: any thread.
 */
NJ_API void nj_server_config_init_sized(struct nj_server_config *config, size_t size_bytes);

/**
 * Set the defaults. Inline, so that it uses the struct size of the program.
 *
 * Context: any thread.
 */
static inline void nj_server_config_init(struct nj_server_config *config)
{
    nj_server_config_init_sized(config, sizeof *config);
}

/**
 * Set the option --NAME of the command line from text: ("rate", "20MiB/s"), ("busy-poll", NULL).
 * `nightjar --help all` lists the names. Some options take several values, one per call.
 *
 * Context:   any thread; one at a time for one `config`.
 * Ownership: values that are stored remain the caller's and must live as long as the server runs.
 * Errors:    in `why`, cut to why_bytes: "--NAME VALUE: expected ...".
 * Returns:   0, or -1.
 */
NJ_API int nj_server_config_set(struct nj_server_config *config, const char *name,
                                const char *value, char *why, size_t why_bytes);

/**
 * Test whether nj_server_config_set() accepts the name, and whether it takes a value.
 *
 * Context: any thread.
 * Errors:  none.
 * Returns: 1 if it takes a value, 0 if it is a switch, -1 if there is no such name.
 */
NJ_API int nj_server_config_takes(const char *name);

/**
 * Find the option that is most similar to `name`, an invalid name, for "did you mean". `more` are
 * further names that the caller accepts, with NULL at the end, or NULL.
 *
 * Context: any thread.
 * Returns: one of these names, or NULL if none is similar.
 */
NJ_API const char *nj_server_config_near(const char *name, const char *const *more);

struct nj_server;

/**
 * Create a server from its configuration. Reads its file and the arguments. Starts nothing,
 * and opens no device.
 *
 * `eal_argv` are the EAL arguments, as for rte_eal_init(), starting with the name of the program.
 * --preset NAME,... may be among them, as with nj_server_run(). If the program or an earlier server
 * has initialised the EAL already, nj_server_start() ignores them: then 0 and NULL are valid. They
 * are also if the file has the arguments ([eal]).
 *
 * Context:   any thread.
 * Ownership: the server is the caller's, for nj_server_free(). The arguments, and objects that
 *            `config` points to, remain the caller's, see struct nj_server_config.
 * Errors:    the reason and the remedy in `why`, cut to why_bytes. Each error of a policy file is
 *            also logged; `why` has the first one.
 * Returns:   the server, or NULL.
 */
NJ_API struct nj_server *nj_server_new(int eal_argc, char **eal_argv,
                                       const struct nj_server_config *config, char *why,
                                       size_t why_bytes);

/**
 * Initialise the EAL unless that is done; open the ports; run a shard on each lcore of the EAL.
 * Returns when they serve. Threads that this starts block all signals except synchronous ones (such
 * as SIGSEGV). Lcores run on threads of the EAL, except the main lcore: its EAL thread is the
 * program's, and its shard runs on another thread with the same CPUs. The caller keeps its signal
 * mask and its CPU affinity, although rte_eal_init() would pin it.
 *
 * A process runs one server at a time: until nj_server_free() of a started server, starting another
 * one fails.
 *
 * Context: any thread; for one server only one thread at a time calls nj_server_start(),
 *          nj_server_wait(), nj_server_free(). Once, or again after an error.
 * Errors:  the reason and the remedy in `why`. Everything that was started is stopped, except the
 *          EAL.
 * Returns: 0, or -1.
 */
NJ_API int nj_server_start(struct nj_server *server, char *why, size_t why_bytes);

/**
 * Reopen the access log, for log rotation, and read the file of the configuration and the
 * certificates again. Keys that a running server can change take effect at once; the log names
 * those that need a restart. An error changes nothing.
 *
 * Context: any thread, between nj_server_start() and nj_server_wait() or nj_server_free(). Reads a
 *          file, and may wait for lcores.
 * Errors:  NJ_ERR_INVALID: a file has errors, or cannot take effect now. The reasons are logged.
 * Returns: 0, also without files, or that error.
 */
NJ_API int nj_server_reload(struct nj_server *server);

/**
 * Change limits of a class, "class=NAME,KEY=VALUE,...", or without class= of the whole server, with
 * keys and values of the policy file ("class=video,request_rate=5MiB/s"). Takes effect at once,
 * also for responses in progress, until a reload finds another value of the limit in the policy
 * file. "for=2h" gives the change an end, at which the former value follows, or that of
 * "then=VALUE".
 *
 * Context: any thread, between the return of nj_server_start() and nj_server_free(); not a handler
 *          on an lcore. After many changes in a row it waits about 0.1 s for lcores to adopt them.
 * Errors:  the reason in `why`; nothing has changed.
 * Returns: 0, or -1.
 */
NJ_API int nj_server_change_limits(struct nj_server *server, const char *change, char *why,
                                   size_t why_bytes);

/**
 * Start the graceful shutdown: no new connections, GOAWAY, running responses are completed within
 * drain_timeout_s. The second call resets the connections that are still open. Returns without
 * waiting. A server that is not started yet ends as soon as it has started.
 *
 * Context: any thread, also a signal handler; between nj_server_new() and nj_server_free().
 */
NJ_API void nj_server_stop(struct nj_server *server);

/**
 * Wait until the server has ended after nj_server_stop(). Then no handler runs any more, and the
 * lcore hooks have returned.
 *
 * Context: see nj_server_start(). Not from a handler.
 * Errors:  NJ_ERR_TIMEOUT: handlers did not return within two seconds after the end, or the disk
 *          did not respond; the log names them.
 * Returns: 0, or that error.
 */
NJ_API int nj_server_wait(struct nj_server *server);

/**
 * End the server, as nj_server_stop() and nj_server_wait() do if they were not called, and free its
 * memory. The EAL and its devices remain. The devices are probed again: ports are as they were
 * after the start of the EAL, with the same numbers. NULL is valid.
 *
 * Context: see nj_server_start(). Not from a handler.
 * Errors:  NJ_ERR_TIMEOUT: as for nj_server_wait(). Memory and ports that these handlers may still
 *          use are never freed, objects that the configuration points to must remain, and no other
 *          server can start in this process: the program should end. The server itself must not be
 *          used any more.
 * Returns: 0, or that error.
 */
NJ_API int nj_server_free(struct nj_server *server);

/** Sums over all lcores since the start of the server, and current values (gauges), from the
 * counters of /nightjar/stats. New versions append fields only. */
struct nj_server_stats {
    size_t size_bytes;      /**< of this struct; set by nj_server_stats_init() */
    uint64_t requests;      /**< requests with a complete head */
    uint64_t responses;     /**< responses sent completely */
    uint64_t status_2xx;    /**< responses with status 200 to 299 */
    uint64_t status_3xx;    /**< ... with status 300 to 399 */
    uint64_t status_4xx;    /**< ... with status 400 to 499 */
    uint64_t status_5xx;    /**< ... with status 500 to 599 */
    uint64_t refused;       /**< requests that the policy refused */
    uint64_t body_bytes;    /**< bytes of response bodies */
    uint64_t connections;   /**< current TCP connections */
    uint64_t accepted;      /**< connections that peers established */
    uint64_t retransmitted; /**< TCP segments sent again */
    uint64_t rx_packets;    /**< packets received */
    uint64_t tx_packets;    /**< packets sent */
    uint64_t rx_bytes;      /**< bytes of received frames */
    uint64_t tx_bytes;      /**< bytes of sent frames */
    uint64_t rx_drops;      /**< received packets dropped, for any reason */
    uint64_t tx_drops;      /**< packets not sent, for any reason */
    uint64_t access_lost;   /**< requests without a line in the access log */
};

/**
 * Prepare a struct for nj_server_read_stats(). Inline, so that it uses the struct size of the
 * program.
 *
 * Context: any thread.
 */
static inline void nj_server_stats_init(struct nj_server_stats *stats)
{
    stats->size_bytes = sizeof *stats;
}

/**
 * Read the counters into a struct prepared by nj_server_stats_init(). Lcores keep writing them
 * meanwhile: each value is recent, but not all are of the same moment. Gauges are up to 50 ms old.
 * Fields that this version does not know become 0.
 *
 * Context: any thread, between the return of nj_server_start() and nj_server_free(), also after
 *          nj_server_wait().
 */
NJ_API void nj_server_read_stats(const struct nj_server *server, struct nj_server_stats *stats);

/**
 * Release the EAL that nj_server_start() initialised, after nj_server_free(). Afterwards DPDK
 * cannot be used, and no server can be started. An EAL that the program initialised is not
 * released. While a server uses the EAL, also after a failed nj_server_free(), this only logs a
 * line.
 *
 * Context: the thread that started the first server.
 */
NJ_API void nj_eal_cleanup(void);

/**
 * Start the EAL with the given arguments, serve until SIGTERM, SIGINT or SIGQUIT, and clean up.
 * SIGHUP calls nj_server_reload().
 *
 * The first SIGTERM, SIGINT or SIGQUIT starts the graceful shutdown: no new connections, GOAWAY,
 * running responses are completed within drain_timeout_s. The second ends at once.
 *
 * SIGUSR1 reopens the access log, for log rotation. SIGUSR2 is logged and does nothing else.
 *
 * Among the EAL arguments, --preset NAME,KEY=VALUE,... is replaced by those of
 * drivers-config/NAME.args, which are printed on stderr. Differences between the port and that file
 * are logged as warnings.
 *
 * Context: main thread, once per process. The server handles these signals; they stay blocked
 *          afterwards, so that a late one cannot interrupt the cleanup at exit, and SIGPIPE and
 *          SIGXFSZ stay ignored. Returns after everything it started has ended.
 * Errors:  a log line, "what is wrong: what to do". The log is stderr, where each line begins with
 *          "TIME nightjar: error: ", unless the configuration has `log`. stdout is only used by the
 *          access log "-". If handlers do not return at the end, the process exits with status 1.
 * Returns: 0 after a signal; 2 if the configuration is invalid, and nothing was started; 1 if the
 *          start failed.
 */
NJ_API int nj_server_run(int eal_argc, char **eal_argv, const struct nj_server_config *config);

/**
 * Read the configuration, its policy file and the files of TLS as nj_server_run() would, and print
 * the result on stdout. Addresses and folder may be missing. Starts nothing, needs no privileges.
 *
 * Context: any thread.
 * Errors:  each on a line of stderr; those of the file as "FILE:LINE: what is wrong".
 * Returns: 0, or 2.
 */
NJ_API int nj_server_check(const struct nj_server_config *config);

/**
 * Draw on stdout the CPU of each lcore and queue and the CPUs of the workers, with the matching EAL
 * arguments: for the lcores in `eal_argv`, or without any for the best ones of this machine.
 * Problems of the given lcores, and better ones, are printed on stderr. Starts nothing.
 *
 * Context: any thread.
 * Errors:  one line on stderr.
 * Returns: 0; 2 for invalid arguments; 1 if the machine's topology cannot be read.
 */
NJ_API int nj_print_placement(int eal_argc, char **eal_argv, const struct nj_server_config *config);

/**
 * Print on stdout the EAL arguments of --preset `preset`: "NAME,KEY=VALUE,...". "NAME,help" prints
 * its file, "list" or "help" all names. Starts nothing.
 *
 * Context: any thread.
 * Errors:  one line on stderr.
 * Returns: 0, or 2.
 */
NJ_API int nj_print_preset(const char *preset);

/**
 * Report a crash on stderr, as nj_server_run() does: the signal, the route whose handler the thread
 * ran, whether that has overflowed its stack, and a backtrace (docs/observe.md). Then the process
 * ends by the signal. abort() is a crash, too: so an exception in C++ that leaves a handler names
 * the route. It handles SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT and SIGSYS, each unless the
 * process has a handler for it already. A handler costs nothing until then.
 *
 * Context: main thread, once, before nj_server_start() and other threads. Not with nj_server_run().
 * Errors:  none.
 */
NJ_API void nj_install_crash_report(void);

/**
 * Keep OpenSSL's memory out of core dumps: private keys, and the secrets of handshakes. OpenSSL
 * then allocates in this process from a heap of nightjar (CRYPTO_set_mem_functions(3)), until the
 * process ends. It is for programs that unload neither library, and the program nightjar calls it.
 * Without it, a core dump of a server with TLS has its private keys.
 *
 * Context: main thread, before any other thread runs and before the first use of OpenSSL.
 * Errors:  NJ_ERR_INVALID: OpenSSL has allocated memory already; nothing has changed.
 * Returns: 0, or the error.
 */
NJ_API int nj_openssl_exclude_from_dumps(void);

/**
 * The version of the library: "major.minor.patch", or more than that between releases, with the
 * time (UTC) and the hash of the commit: "0.1.0~git202611261838.b86b4def". In a package it is the
 * version of the package. docs/releases.md has all forms.
 *
 * Context: any thread, also in a signal handler.
 * Returns: a constant string without spaces.
 */
NJ_API const char *nj_version(void);

#ifdef __cplusplus
}
#endif

#endif

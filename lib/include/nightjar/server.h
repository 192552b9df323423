/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Run a nightjar server: one shard per EAL lcore, a folder served over HTTP/2.
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
#define NJ_SERVER_TRUSTED_MAX     16 /**< networks of trusted proxies of a server */

/** For a limit of struct nj_server_config: none, whatever the policy file says. 0 is what the file
 * says, and none where that is silent, too. */
#define NJ_NONE   UINT64_MAX
#define NJ_NONE32 UINT32_MAX /**< NJ_NONE for limits of 32 bits */

/** How files that are read piece by piece are read. */
enum nj_file_reads {
    NJ_FILE_READS_DEFAULT,  /**< NJ_FILE_READS_AUTO */
    NJ_FILE_READS_AUTO,     /**< DIRECT if the kernel lets us, else THREADS */
    NJ_FILE_READS_DIRECT,   /**< io_uring, past the page cache where the file system can */
    NJ_FILE_READS_BUFFERED, /**< io_uring, through the page cache */
    NJ_FILE_READS_THREADS,  /**< by workers, through the page cache */
};

/** Symbolic links below the root. */
enum nj_symlinks {
    NJ_SYMLINKS_DEFAULT, /**< as the policy file says, else NJ_SYMLINKS_BENEATH */
    NJ_SYMLINKS_NONE,    /**< are not followed: 404 */
    NJ_SYMLINKS_OWNER,   /**< are followed to files of the link's owner */
    NJ_SYMLINKS_BENEATH, /**< are followed while they stay below the root */
};

/** How urgent a line of the log is. */
enum nj_log_level {
    NJ_LOG_ERROR,   /**< something does not work, or the server ends for it */
    NJ_LOG_WARNING, /**< it works on, and somebody should look */
    NJ_LOG_INFO,    /**< what it does */
};

/** What a line of the access log looks like. */
enum nj_log_format {
    NJ_LOG_DEFAULT,  /**< as the policy file says, else NJ_LOG_COMBINED */
    NJ_LOG_COMBINED, /**< the combined format of Apache httpd and nginx, and more behind it */
    NJ_LOG_JSON,     /**< a JSON object (RFC 8259) */
};

/** What an lcore does while it has no work. The first packet afterwards waits no longer than named.
 * Other lcores and threads wake one that sleeps. */
enum nj_idle {
    NJ_IDLE_SLEEP, /**< wait for the file that net_tap and net_af_packet receive from; with other
                    * drivers sleep for 50 us, after 100 ms without work for 1 ms */
    NJ_IDLE_SPIN,  /**< poll: nothing waits, and the core is never idle */
    NJ_IDLE_PAUSE, /**< poll every 5 us with the CPU's instruction for waiting with less power */
    NJ_IDLE_INTERRUPT, /**< wait for the receive interrupt; without one as NJ_IDLE_SLEEP */
};

/** Strings, routes and contexts are the caller's, and must live until nj_server_free() or the end
 * of nj_server_run(). The struct itself is copied.
 *
 * It grows at its end only. A program that was built with an older nightjar has a smaller struct,
 * and the fields that it lacks have their defaults. One that was built with a newer nightjar may
 * run with this one as long as it leaves the fields that are not known here zero. */
struct nj_server_config {
    size_t size_bytes; /**< of this struct; set by nj_server_config_init() */
    /** The ports to serve on, by DPDK's numbers; none: the only one there is. "N", or with the ids
     * of the lcores that poll it "N=4-7". Each lcore polls one port: ports that name none share the
     * lcores that no port names.
     *
     * What is said of the link below is of one port: "@N" behind it names the port. Without it, an
     * address is of the first port; a gateway, route or neighbour is of the port on whose link it
     * is; a VLAN is of every port. */
    const char *port[NJ_SERVER_PORTS_MAX];
    /** Our addresses; at least one for each port, at most eight. The first NULL ends this list and
     * each of those below. "ADDRESS/PREFIX" of IPv4 or IPv6, or "auto6": IPv6 addresses as routers
     * tell. With any IPv6 goes a link-local address. */
    const char *addr[NJ_SERVER_ADDRS_MAX];
    /** A router on a port's link for IPv4, and one for IPv6, in any order. Without: only the link
     * is reached, or with IPv6 what routers advertise. */
    const char *gateway[NJ_SERVER_GATEWAYS_MAX];
    /** Networks behind another router of that link: "NETWORK/PREFIX=ROUTER", at most 16 for a
     * port. The longest prefix that an address has counts, those of `addr` among them; then comes
     * the gateway. */
    const char *route[NJ_SERVER_ROUTES_MAX];
    /** Hosts of that link, gateways among them, whose MAC address is given: "ADDRESS=MAC", at most
     * seven for a port. ARP and neighbour discovery are not asked for them, and not believed. */
    const char *neighbour[NJ_SERVER_NEIGHBOURS_MAX];
    const char *vlan[NJ_SERVER_PORTS_MAX]; /**< 802.1Q VLAN id, 1..4094; none: untagged frames */
    const char *rss_key;                   /**< of the hash that spreads connections over lcores, 80
                                              hexadecimal digits; a random one for each start */
    uint16_t mtu;     /**< of IP packets, 1280..9000 bytes; 0: the device's, at most 1500 */
    uint16_t rx_ring; /**< descriptors of each receive queue, 64..8192; 0: 1024. A device with other
                         bounds takes the nearest number */
    uint16_t tx_ring; /**< the same of each transmit queue */
    uint16_t listen_port;          /**< TCP port; 80 */
    const char *root;              /**< folder to serve; required where there are no routes */
    const struct nj_route *routes; /**< handlers, which come before the folder; see handler.h */
    uint32_t n_routes;             /**< their number, at most NJ_ROUTES_MAX */
    uint32_t fibers_max;           /**< handlers of one lcore that can wait at once; 256 */
    enum nj_run strategy;          /**< where handlers run; NJ_RUN_EWYK */
    uint64_t cache_bytes;          /**< of file contents kept in memory; 1 GiB */
    uint32_t conns_max;            /**< TCP connections of one lcore; 65536 */
    double preface_timeout_s;      /**< a new connection may be silent for so long; 10 */
    double idle_timeout_s;         /**< one without a running request; 75 */
    double drain_timeout_s;        /**< after SIGTERM, running responses get this long; 10 */
    uint32_t workers;   /**< threads for OS_BLOCKING handlers, at most 32; 0: up to 4, as many as
                           CPUs are left by the lcores, at least 1 */
    bool no_offload;    /**< checksums by software, whatever the device offers; off */
    bool newreno;       /**< congestion control by NewReno instead of CUBIC; off */
    bool no_ecn;        /**< no ECN (RFC 3168) for peers that ask for it; off */
    bool serve_private; /**< as root, also files that others may not read; off */
    enum nj_idle idle;  /**< what lcores do without work; NJ_IDLE_SLEEP */
    bool busy_poll;     /**< the same as NJ_IDLE_SPIN, and wins over `idle`; off */
    bool live;          /**< a line of rates on stderr every second, if that is a terminal; off.
                           Of nj_server_run() only */
    /** Of nj_server_run() only. A crash (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) prints a
     * backtrace on stderr before the signal's default action. Signals that the program has handlers
     * for already are left alone. Off: a program's handling of its crashes is its own. */
    bool crash_report;

    /** Who may have what: classes, clients, lists, hours of the day; docs/policy.md. What is set
     * here wins over the same in that file. NULL: none. */
    const char *policy_file;
    /* Bytes of response bodies per second. Clients and responses of classes that say otherwise have
     * what their class says. */
    uint64_t rate;             /**< bytes per second of response bodies, of the whole server */
    uint64_t rate_per_client;  /**< the same of one client, whatever it opens */
    uint64_t rate_per_request; /**< the same of one response, behind its first rate_after bytes */
    uint64_t rate_after;       /**< bytes of a response that rate_per_request does not limit */
    /* Of one client: an address of IPv4 or a /64 of IPv6, unless the policy file says otherwise. */
    uint32_t connections_per_client; /**< TCP connections of one client, open at once */
    uint32_t streams_per_client;     /**< requests of one client, open at once */
    uint32_t requests_per_client;    /**< requests of one client per second */

    /** Networks of proxies ("10.0.0.0/8"): their connections count for no client, and only they are
     * believed when the policy takes clients from a header. The policy file may name more. */
    const char *trusted_proxy[NJ_SERVER_TRUSTED_MAX];

    /* Of requests. 0: as the policy file says, else the default named. */
    uint64_t max_body;        /**< bytes, beyond: 413; what routes say, for files any */
    uint32_t max_header_size; /**< bytes as RFC 9113 6.5.2 counts, beyond: 431; 32 KiB, the most */
    uint32_t max_headers;     /**< fields, beyond: 431; 128, the most */
    double header_timeout_s;  /**< from the first byte of a header block to its last; 10 */
    double body_timeout_s;    /**< without progress of a request body; 60 */
    double send_timeout_s;    /**< without progress of a response that may go; 60 */
    double body_deadline_s; /**< from a request to the end of its body, unless it is being answered
                             * before; 3600 */
    uint64_t min_upload_rate; /**< bytes per second of a request body that a peer sends on the
                               * average of body_timeout_s, unless it is being answered; 500 */
    uint64_t min_rate;        /**< bytes per second that a peer takes on the average of
                               * send_timeout_s, or its response is ended; none */

    /* Of files. NULL and off: as the policy file says, else the default named. */
    const char *index;         /**< what "folder/" stands for; index.html */
    bool listing;              /**< a folder without one is listed; off */
    bool no_precompressed;     /**< name.br, .zst and .gz are not looked for; off */
    const char *mime_types;    /**< a mime.types file, looked at before our own table; none */
    const char *cache_control; /**< that field of 200, 206 and 304; none */
    /** "404=/404.html": a file below the root for a status. */
    const char *error_page[NJ_SERVER_ERROR_PAGES_MAX];
    enum nj_symlinks symlinks;     /**< how symbolic links are followed */
    enum nj_file_reads file_reads; /**< how files are read */

    const char *access_log;        /**< a file, or "-": standard output; none */
    enum nj_log_format log_format; /**< of its lines */

    /** Gets each line that the server has to say, without time and newline. Called from threads of
     * the library, of which several may call at once, never from an lcore; and from those that call
     * the functions below. It may block; then the supervision of lcores waits for it. It must not
     * call functions of this header. NULL: lines go to stderr, with time and level. */
    void (*log)(void *ctx, enum nj_log_level level, const char *line);
    void *log_ctx; /**< for `log` */

    /** Called on the thread of each lcore before its first step, and so before any handler runs
     * there; nj_server_start() waits for it. For state of handlers by lcore: see nj_lcore_id().
     * NULL: none. */
    void (*lcore_init)(unsigned lcore_id, void *ctx);
    /** Called on the thread of each lcore after its last step, when all handlers there have ended.
     * NULL: none. */
    void (*lcore_fini)(unsigned lcore_id, void *ctx);
    void *lcore_ctx; /**< for these two */
};

/**
 * Fill in the defaults of a struct of `size_bytes`. Programs call nj_server_config_init().
 *
 * Context: any thread.
 */
NJ_API void nj_server_config_init_sized(struct nj_server_config *config, size_t size_bytes);

/**
 * Fill in the defaults. Compiled into the program, so that the size is of its struct.
 *
 * Context: any thread.
 */
static inline void nj_server_config_init(struct nj_server_config *config)
{
    nj_server_config_init_sized(config, sizeof *config);
}

/**
 * Set what the command line calls --NAME, from text: ("rate", "20MiB/s"), ("busy-poll", NULL).
 * `nightjar --help` lists the names. Some names take several values, one in each call.
 *
 * Context:   any thread; one at a time for one `config`.
 * Ownership: a value that is kept stays the caller's and must live as long as the server runs.
 * Errors:    in `why`, cut to why_bytes: "--NAME VALUE: expected ...".
 * Returns:   0, or -1.
 */
NJ_API int nj_server_config_set(struct nj_server_config *config, const char *name,
                                const char *value, char *why, size_t why_bytes);

/**
 * Look whether nj_server_config_set() knows the name, and whether that takes a value.
 *
 * Context: any thread.
 * Errors:  none.
 * Returns: 1 when it takes one, 0 when it is a switch, -1 when there is no such name.
 */
NJ_API int nj_server_config_takes(const char *name);

/**
 * Find the option that is most like `name`, which is none: for "did you mean". `more` are names
 * that the caller takes besides, with NULL behind the last, or NULL.
 *
 * Context: any thread.
 * Returns: one of these names, or NULL when none is near.
 */
NJ_API const char *nj_server_config_near(const char *name, const char *const *more);

struct nj_server;

/**
 * Make a server from its configuration. Reads the policy file and the arguments; starts nothing,
 * and opens no device.
 *
 * `eal_argv` are the arguments for the EAL, with the program's name first, as rte_eal_init() takes
 * them, and --preset NAME,... among them as with nj_server_run(). When the EAL of the process is
 * initialised already, by the program or by an earlier server, nj_server_start() leaves it as it
 * is and does not use them: then 0 and NULL will do.
 *
 * Context:   any thread.
 * Ownership: the caller's, for nj_server_free(). Arguments and what `config` points at stay the
 *            caller's, see struct nj_server_config.
 * Errors:    what is wrong and what to do in `why`, cut to why_bytes. Each error of a policy file
 *            is a line of the log besides, and the first one is in `why`.
 * Returns:   the server, or NULL.
 */
NJ_API struct nj_server *nj_server_new(int eal_argc, char **eal_argv,
                                       const struct nj_server_config *config, char *why,
                                       size_t why_bytes);

/**
 * Initialise the EAL, unless it is already; open the ports; run a shard on each lcore of the EAL;
 * return when they serve. Threads that this starts block all signals but those of faults (SIGSEGV
 * and the like). Lcores are threads of the EAL, but the main lcore: its thread is the program's,
 * and its shard runs on another thread with the same CPUs. The caller keeps its signal mask and its
 * CPUs, also where rte_eal_init() would pin it.
 *
 * A process runs one server at a time: from the start of one until nj_server_free() of it another
 * one is refused.
 *
 * Context: any thread; for one server one thread at a time calls nj_server_start(),
 *          nj_server_wait(), nj_server_free(). Once, or again after an error.
 * Errors:  what is wrong and what to do in `why`. Nothing that was started stays, but the EAL.
 * Returns: 0, or -1.
 */
NJ_API int nj_server_start(struct nj_server *server, char *why, size_t why_bytes);

/**
 * Open the access log anew, in case that its file was renamed, and read the policy file again. A
 * good one is in force at once, also for what is under way.
 *
 * Context: any thread, between nj_server_start() and nj_server_wait() or nj_server_free(). Reads
 *          a file, and may wait for lcores.
 * Errors:  NJ_ERR_INVALID: the policy file has errors, or cannot be put in force now. Lines of the
 *          log say why, and the policy in force stays.
 * Returns: 0, also without a policy file, or that error.
 */
NJ_API int nj_server_reload(struct nj_server *server);

/**
 * Change limits of a class, "class=NAME,KEY=VALUE,...", or without class= of the whole server: keys
 * and values of the policy file ("class=video,request_rate=5MiB/s"). In force at once, also for
 * responses that are being sent, until the policy file is read again.
 *
 * Context: any thread, between the return of nj_server_start() and nj_server_free(); not a handler
 *          on an lcore. After many changes in a row it waits for lcores to adopt them, some 0.1 s.
 * Errors:  what is wrong in `why`; nothing has changed.
 * Returns: 0, or -1.
 */
NJ_API int nj_server_change_limits(struct nj_server *server, const char *change, char *why,
                                   size_t why_bytes);

/**
 * Begin the graceful end: no new connections, GOAWAY, running responses are finished, at most
 * drain_timeout_s long. The second call resets the connections that are still open. Returns
 * without waiting. A server that is not started yet ends as soon as it has started.
 *
 * Context: any thread, signal handlers too; between nj_server_new() and nj_server_free().
 */
NJ_API void nj_server_stop(struct nj_server *server);

/**
 * Wait until the server has ended after nj_server_stop(): then no handler runs any more, and hooks
 * of lcores have returned.
 *
 * Context: see nj_server_start(). Not from a handler.
 * Errors:  NJ_ERR_TIMEOUT: handlers did not return within two seconds after the end, or the disk
 *          did not answer; lines of the log say which.
 * Returns: 0, or that error.
 */
NJ_API int nj_server_wait(struct nj_server *server);

/**
 * End the server, as nj_server_stop() and nj_server_wait() do if they were not called, and free all
 * that it has. Left are the EAL and its devices, which are probed again: ports are as they were
 * after the EAL's start, with the same numbers. NULL is fine.
 *
 * Context: see nj_server_start(). Not from a handler.
 * Errors:  NJ_ERR_TIMEOUT: as of nj_server_wait(). Memory and ports that these handlers may still
 *          use are not freed, then or later, what the configuration points at has to stay, too,
 *          and no other server can start in this process: the program should end. The server
 *          itself may not be used any more.
 * Returns: 0, or that error.
 */
NJ_API int nj_server_free(struct nj_server *server);

/** Sums over all lcores since the start of the server, and what is there now; from the counters of
 * /nightjar/stats. Grows at its end only. */
struct nj_server_stats {
    size_t size_bytes;      /**< of this struct; set by nj_server_stats_init() */
    uint64_t requests;      /**< with a complete head */
    uint64_t responses;     /**< sent to the last byte */
    uint64_t status_2xx;    /**< responses with a status of 200 to 299 */
    uint64_t status_3xx;    /**< of 300 to 399 */
    uint64_t status_4xx;    /**< of 400 to 499 */
    uint64_t status_5xx;    /**< of 500 to 599 */
    uint64_t refused;       /**< requests that the policy refused */
    uint64_t body_bytes;    /**< of responses */
    uint64_t connections;   /**< TCP connections now */
    uint64_t accepted;      /**< connections that peers established */
    uint64_t retransmitted; /**< TCP segments */
    uint64_t rx_packets;    /**< received */
    uint64_t tx_packets;    /**< sent */
    uint64_t rx_bytes;      /**< of frames that were received */
    uint64_t tx_bytes;      /**< of frames that were sent */
    uint64_t rx_drops;      /**< received packets that were dropped, for whatever reason */
    uint64_t tx_drops;      /**< packets that were not sent, for whatever reason */
    uint64_t access_lost;   /**< requests without a line in the access log */
};

/**
 * Prepare a struct for nj_server_read_stats(). Compiled into the program, so that the size is of
 * its struct.
 *
 * Context: any thread.
 */
static inline void nj_server_stats_init(struct nj_server_stats *stats)
{
    stats->size_bytes = sizeof *stats;
}

/**
 * Read the counters into a struct that nj_server_stats_init() has prepared. Lcores write the
 * counters meanwhile: each is of a recent moment, not all of the same. Gauges are up to 50 ms old.
 * Fields that this version does not know become 0.
 *
 * Context: any thread, between the return of nj_server_start() and nj_server_free(), also after
 *          nj_server_wait().
 */
NJ_API void nj_server_read_stats(const struct nj_server *server, struct nj_server_stats *stats);

/**
 * Release the EAL that nj_server_start() initialised, after nj_server_free(). Nothing of DPDK can
 * be used afterwards, and no server started. An EAL that the program initialised is left alone.
 * While a server uses the EAL, also after an nj_server_free() that failed, nothing happens but a
 * line of the log.
 *
 * Context: the thread that started the first server.
 */
NJ_API void nj_eal_cleanup(void);

/**
 * Start the EAL with the user's arguments, serve until SIGTERM or SIGINT, and clean up. SIGHUP
 * reads the policy file again: a good one is in force at once, also for what is under way; of a bad
 * one every fault is told on stderr, and the old one stays.
 *
 * The first signal begins the graceful end: no new connections, GOAWAY, running responses are
 * finished, at most drain_timeout_s long. A second one ends at once.
 *
 * SIGUSR1 has the access log opened anew: its file was renamed.
 *
 * Among the EAL's arguments, --preset NAME,KEY=VALUE,... stands for those of
 * drivers-config/NAME.args, which are said on stderr; where the port is not as that file expects, a
 * warning says so.
 *
 * Context: main thread, once per process. These signals are the server's; they stay blocked
 *          afterwards, so that a late one can't cut the cleaning at exit short, and SIGPIPE and
 *          SIGXFSZ stay ignored. Returns when everything it started is gone.
 * Errors:  a line of the log, "what is wrong: what to do". The log is stderr, where each line
 *          begins with "TIME nightjar: error: ", unless the configuration has `log`. stdout is left
 *          to an access log that is "-". Where handlers do not return at the end, the process exits
 *          with status 1.
 * Returns: 0 after a signal; 2 when the configuration is wrong, and nothing was tried; 1 when it
 *          could not start.
 */
NJ_API int nj_server_run(int eal_argc, char **eal_argv, const struct nj_server_config *config);

/**
 * Read the configuration, and the policy file it names, as nj_server_run() would, and say on stdout
 * what they come to. Addresses and folder may be missing. Starts nothing, needs no privileges.
 *
 * Context: any thread.
 * Errors:  each on a line of stderr; those of the file as "FILE:LINE: what is wrong".
 * Returns: 0, or 2.
 */
NJ_API int nj_server_check(const struct nj_server_config *config);

/**
 * Draw on stdout which CPU polls which queue and where the workers run, with the EAL arguments for
 * it: for the lcores that the EAL's arguments name, or if they name none for the best ones of this
 * machine. What is wrong with named ones, and better ones, go to stderr. Starts nothing.
 *
 * Context: any thread.
 * Errors:  one line on stderr.
 * Returns: 0; 2 when the arguments can't be drawn; 1 when the machine can't be read.
 */
NJ_API int nj_print_placement(int eal_argc, char **eal_argv, const struct nj_server_config *config);

/**
 * Print on stdout the EAL's arguments that --preset `preset` stands for: "NAME,KEY=VALUE,...". Or,
 * for "NAME,help", the file of it, and for "list" or "help" all names. Starts nothing.
 *
 * Context: any thread.
 * Errors:  one line on stderr.
 * Returns: 0, or 2.
 */
NJ_API int nj_print_preset(const char *preset);

/**
 * The version of the library.
 *
 * Context: any thread.
 * Returns: a constant string, "major.minor.patch".
 */
NJ_API const char *nj_version(void);

#ifdef __cplusplus
}
#endif

#endif

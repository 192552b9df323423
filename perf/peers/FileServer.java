// SPDX-License-Identifier: BSD-3-Clause
// Jetty as it serves files best: its default servlet with its cache in front, HTTP/2 without TLS.
// java FileServer ADDRESS FOLDER

import org.eclipse.jetty.http2.parser.RateControl;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.DefaultServlet;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

public class FileServer {
    static final int PORT = 80, BACKLOG = 16384, STREAMS = 128;
    static final int OUTPUT_BYTES = 32 << 10;

    static ServletHolder files(String folder) {
        ServletHolder files = new ServletHolder(DefaultServlet.class);
        files.setInitParameter("resourceBase", folder);
        files.setInitParameter("dirAllowed", "false");
        files.setInitParameter("gzip", "false");
        files.setInitParameter("useFileMappedBuffer", "true"); // and no copy into Java's heap
        files.setInitParameter("maxCacheSize", String.valueOf(64 << 20));
        files.setInitParameter("maxCachedFileSize", String.valueOf(16 << 20));
        return files;
    }

    public static void main(String[] args) throws Exception {
        Server server = new Server();
        HttpConfiguration config = new HttpConfiguration();
        config.setSendServerVersion(false);
        config.setOutputBufferSize(OUTPUT_BYTES);

        HTTP2CServerConnectionFactory h2 = new HTTP2CServerConnectionFactory(config);
        h2.setMaxConcurrentStreams(STREAMS);
        h2.setRateControlFactory(new RateControl.Factory() {}); // it counts frames a second
        // One selector, as everything is on one CPU, and one acceptor.
        ServerConnector connector = new ServerConnector(server, 1, 1, h2);
        connector.setHost(args[0]);
        connector.setPort(PORT);
        connector.setAcceptQueueSize(BACKLOG);
        connector.setIdleTimeout(3600 * 1000);
        server.addConnector(connector);

        ServletContextHandler context = new ServletContextHandler(); // no sessions, no log
        context.addServlet(files(args[1]), "/");
        server.setHandler(context);
        server.start();
        server.join();
    }
}

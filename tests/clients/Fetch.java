// SPDX-License-Identifier: BSD-3-Clause
// CA URL NAME...: fetches one name and then the others at once, on one connection. Prints NAME SHA256
// PROTOCOL of each.
import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class Fetch {
    static SSLContext trusting(String ca) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null);
        try (FileInputStream pem = new FileInputStream(ca)) {
            store.setCertificateEntry(
                "ca", CertificateFactory.getInstance("X.509").generateCertificate(pem));
        }
        TrustManagerFactory trust =
            TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    static String line(String name, HttpResponse<byte[]> response) {
        if (response.statusCode() != 200)
            throw new IllegalStateException(name + ": " + response.statusCode());
        try {
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(response.body());
            boolean h2 = response.version() == HttpClient.Version.HTTP_2;
            return name + " " + HexFormat.of().formatHex(sum) + (h2 ? " h2" : " http/1.1");
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newBuilder().sslContext(trusting(arguments[0])).build();
        String[] names = Arrays.copyOfRange(arguments, 2, arguments.length);
        /* One request first, or several would begin connections before one is HTTP/2. */
        String first = fetched(client, arguments[1], names[0]).join();
        System.out.println(first);
        Arrays.stream(names).skip(1).map(name -> fetched(client, arguments[1], name)).toList()
            .forEach(future -> System.out.println(future.join()));
    }

    static CompletableFuture<String> fetched(HttpClient client, String url, String name) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + name)).build();
        return client.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray())
            .thenApply(response -> line(name, response));
    }
}

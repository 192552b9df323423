/* SPDX-License-Identifier: BSD-3-Clause */
/* CA URL NAME...: fetches all names with HTTP/1.1. Prints NAME SHA256 PROTOCOL of each. CA may be a
 * file that is empty, for a URL without TLS. */
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
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

class FetchH1 {
    static SSLContext trusting(String path) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream file = new FileInputStream(path)) {
            for (var cert : CertificateFactory.getInstance("X.509").generateCertificates(file))
                store.setCertificateEntry("authority", cert);
        }
        TrustManagerFactory trust =
            TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
            .sslContext(trusting(arguments[0])).build();
        for (String name : Arrays.copyOfRange(arguments, 2, arguments.length)) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[1] + name)).build();
            HttpResponse<byte[]> response =
                client.send(request, HttpResponse.BodyHandlers.ofByteArray());
            if (response.statusCode() != 200)
                throw new Exception(name + " " + response.statusCode());
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(response.body());
            System.out.println(name + " " + HexFormat.of().formatHex(sum) + " HTTP/1.1");
        }
    }
}

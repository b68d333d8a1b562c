import java.net.URI;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.logging.LogManager;

/**
 * What the programs here share: a check has a name, and prints one line.
 *
 * <p>Promises: every check is made, in the order given, whatever became of the one before; each that passes prints "ok NAME"; when one
 * failed, its trace is shown and the program ends with a failure. Knows neither a framework nor which server it is that answers.
 */
final class Checking {

    /** Something that may fail. */
    interface Work {
        void run() throws Exception;
    }

    private final Map<String, Work> checks = new LinkedHashMap<>();

    Checking check(String name, Work work) {
        checks.put(name, work);
        return this;
    }

    /** Makes the checks and ends the program. */
    void make() {
        // Frameworks log each refused statement; those are wanted here.
        LogManager.getLogManager().reset();
        boolean failed = false;
        for (var check : checks.entrySet()) {
            try {
                check.getValue().run();
                System.out.println("ok " + check.getKey());
            } catch (Throwable thrown) {
                failed = true;
                System.out.println("FAILED " + check.getKey());
                thrown.printStackTrace(System.out);
            }
        }
        System.exit(failed ? 1 : 0);
    }

    static void equal(Object found, Object expected) {
        if (!Objects.deepEquals(found, expected)) {
            throw new AssertionError("found " + found + ", expected " + expected);
        }
    }

    /** Does the work, which must throw this kind, whose cause is an error of the server with this SQLSTATE. */
    static <T extends Throwable> T fails(String state, Class<T> kind, Work work) {
        try {
            work.run();
        } catch (Throwable thrown) {
            if (!kind.isInstance(thrown)) {
                throw new AssertionError("not a " + kind.getName(), thrown);
            }
            Throwable cause = thrown;
            while (cause != null && !(cause instanceof SQLException)) {
                cause = cause.getCause();
            }
            for (var next = (SQLException) cause; next != null; next = next.getNextException()) {
                if (state.equals(next.getSQLState())) {
                    return kind.cast(thrown);
                }
            }
            throw new AssertionError("not " + state, thrown);
        }
        throw new AssertionError("no error where " + state + " was expected");
    }

    /** The server's URL as Java's drivers want it, with these options. */
    static String url(String url, String options) {
        var address = URI.create(url);
        return (
            "jdbc:postgresql://" +
            address.getHost() +
            ":" +
            address.getPort() +
            address.getPath() +
            "?user=" +
            address.getUserInfo().split(":")[0] +
            options
        );
    }
}

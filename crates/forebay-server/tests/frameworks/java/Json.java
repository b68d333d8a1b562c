import java.util.Map;
import org.hibernate.type.descriptor.WrapperOptions;
import org.hibernate.type.descriptor.java.JavaType;
import org.hibernate.type.format.AbstractJsonFormatMapper;

/** JSON objects of one member, both texts: so that no library has to be installed for JSON. */
public final class Json extends AbstractJsonFormatMapper {

    @Override
    protected <T> T fromString(CharSequence text, java.lang.reflect.Type type) {
        var parts = text.toString().split("\"");
        @SuppressWarnings("unchecked")
        var value = (T) Map.of(parts[1], parts[3]);
        return value;
    }

    @Override
    protected <T> String toString(T value, java.lang.reflect.Type type) {
        var member = ((Map<?, ?>) value).entrySet().iterator().next();
        return "{\"" + member.getKey() + "\": \"" + member.getValue() + "\"}";
    }
}

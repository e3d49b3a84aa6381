/* Avro to records. Nothing is trusted: every byte is looked for before it is read, and no claimed length is allocated. */

#include "shape.h"

#include <string.h>

typedef struct {
    const unsigned char *at, *end;
    PyObject *malformed;
} Reader;

static PyObject *read_value(Reader *in, const Shape *shape);

static PyObject *missing(void) {
    PyErr_SetString(PyExc_IndexError, "bytes are missing");
    return NULL;
}

static int read_byte(Reader *in, unsigned char *byte) {
    if (in->at >= in->end) {
        missing();
        return -1;
    }
    *byte = *in->at++;
    return 0;
}

/* A whole number in zigzag, of at most ten bytes and 64 bits. */
static int read_long(Reader *in, int64_t *number) {
    uint64_t zigzag = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        unsigned char byte;
        if (read_byte(in, &byte) < 0)
            return -1;
        if (shift == 63 && byte > 1) {
            PyErr_SetString(in->malformed, byte & 128 ? "an integer of more than ten bytes"
                                                      : "an integer of more than 64 bits");
            return -1;
        }
        zigzag |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            break;
    }
    *number = (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
    return 0;
}

/* A length that is there: what it says lies before the end. */
static int read_length(Reader *in, Py_ssize_t *length) {
    int64_t number;
    if (read_long(in, &number) < 0)
        return -1;
    if (number < 0) {
        PyErr_Format(in->malformed, "a length of %lld", (long long)number);
        return -1;
    }
    if (number > in->end - in->at) {
        missing();
        return -1;
    }
    *length = (Py_ssize_t)number;
    return 0;
}

static PyObject *read_integer(Reader *in, const Shape *shape) {
    int64_t number;
    if (read_long(in, &number) < 0)
        return NULL;
    if (shape->kind == KIND_INT && (number < INT32_MIN || number > INT32_MAX))
        return PyErr_Format(in->malformed, "%lld does not fit in 32 bits", (long long)number);
    return PyLong_FromLongLong(number);
}

static PyObject *no_such_key(unsigned char byte) {
    PyObject *key = PyLong_FromLong(byte);
    if (key != NULL) {
        PyErr_SetObject(PyExc_KeyError, key);
        Py_DECREF(key);
    }
    return NULL;
}

static PyObject *read_boolean(Reader *in) {
    unsigned char byte;
    if (read_byte(in, &byte) < 0)
        return NULL;
    return byte > 1 ? no_such_key(byte) : PyBool_FromLong(byte);
}

static PyObject *read_double(Reader *in) {
    uint64_t bits = 0;
    double number;
    if (in->end - in->at < 8)
        return missing();
    for (int i = 0; i < 8; i++)
        bits |= (uint64_t)in->at[i] << (8 * i);
    in->at += 8;
    memcpy(&number, &bits, sizeof number);
    return PyFloat_FromDouble(number);
}

static PyObject *read_string(Reader *in, const Shape *shape) {
    Py_ssize_t length;
    if (read_length(in, &length) < 0)
        return NULL;
    const char *start = (const char *)in->at;
    in->at += length;
    return shape->kind == KIND_STRING ? PyUnicode_DecodeUTF8(start, length, NULL)
                                      : PyBytes_FromStringAndSize(start, length);
}

static PyObject *read_enum(Reader *in, const Shape *shape) {
    unsigned char byte;
    if (read_byte(in, &byte) < 0)
        return NULL;
    if (byte & 129 || shape->members[byte >> 1] == NULL) /* negative, more than one byte, or no member */
        return no_such_key(byte);
    return Py_NewRef(shape->members[byte >> 1]);
}

/* Which of a union's branches; -1 with an exception set where there is no such branch. */
static int read_branch(Reader *in, Py_ssize_t branches) {
    unsigned char byte;
    if (read_byte(in, &byte) < 0)
        return -1;
    if (byte & 129 || byte >> 1 >= branches) {
        PyErr_SetString(in->malformed, "no such branch of a union");
        return -1;
    }
    return byte >> 1;
}

static PyObject *read_choice(Reader *in, const Shape *shape) {
    int branch = read_branch(in, shape->count);
    return branch < 0 ? NULL : read_value(in, shape->parts[branch]);
}

static PyObject *read_optional(Reader *in, const Shape *shape) {
    int branch = read_branch(in, 2);
    if (branch < 0)
        return NULL;
    return branch == 0 ? Py_NewRef(Py_None) : read_value(in, shape->parts[0]);
}

static int read_items(Reader *in, const Shape *item, PyObject *items) {
    for (;;) {
        int64_t count;
        if (read_long(in, &count) < 0)
            return -1;
        if (count == 0)
            return 0;
        if (count < 0) { /* a block that tells its size in bytes, for readers that skip it */
            int64_t size;
            if (read_long(in, &size) < 0)
                return -1;
            if (size < 0) {
                PyErr_Format(in->malformed, "a length of %lld", (long long)size);
                return -1;
            }
        }
        /* Every item takes a byte at least, so a claimed count ends at the end of the bytes. */
        uint64_t left = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
        while (left-- > 0) {
            PyObject *value = read_value(in, item);
            if (value == NULL)
                return -1;
            int failed = PyList_Append(items, value);
            Py_DECREF(value);
            if (failed)
                return -1;
        }
    }
}

static PyObject *read_array(Reader *in, const Shape *shape) {
    if (in->at < in->end && *in->at == 0) {
        in->at++;
        return PyTuple_New(0);
    }
    PyObject *whole = NULL, *items = PyList_New(0);
    if (items != NULL && read_items(in, shape->parts[0], items) == 0)
        whole = PyList_AsTuple(items);
    Py_XDECREF(items);
    return whole;
}

static PyObject *read_fields(Reader *in, const Shape *shape) {
    const char *start = (const char *)in->at;
    PyObject *record = shape->cls->tp_alloc(shape->cls, 0);
    if (record == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < shape->count; i++) {
        PyObject *value = read_value(in, shape->parts[i]);
        if (value == NULL)
            goto failed;
        *slot(record, shape->offsets[i]) = value;
    }
    if (shape->remembered != 0) {
        PyObject *whole = PyBytes_FromStringAndSize(start, (const char *)in->at - start);
        if (whole == NULL)
            goto failed;
        *slot(record, shape->remembered) = whole;
    }
    /* It holds numbers, text and records like itself, so it is in no cycle, and the collector need not look at it. */
    if (PyObject_GC_IsTracked(record))
        PyObject_GC_UnTrack(record);
    return record;
failed:
    Py_DECREF(record);
    return NULL;
}

static PyObject *read_value(Reader *in, const Shape *shape) {
    switch (shape->kind) {
    case KIND_INT:
    case KIND_LONG:
        return read_integer(in, shape);
    case KIND_BOOLEAN:
        return read_boolean(in);
    case KIND_DOUBLE:
        return read_double(in);
    case KIND_STRING:
    case KIND_BYTES:
        return read_string(in, shape);
    case KIND_OPTIONAL:
        return read_optional(in, shape);
    case KIND_CHOICE:
        return read_choice(in, shape);
    case KIND_ARRAY:
        return read_array(in, shape);
    case KIND_ENUM:
        return read_enum(in, shape);
    case KIND_RECORD:
        return read_fields(in, shape);
    }
    Py_UNREACHABLE();
}

PyObject *read_record(const Shape *shape, PyObject *data, Py_ssize_t index, PyObject *malformed) {
    const unsigned char *start = (const unsigned char *)PyBytes_AS_STRING(data);
    Py_ssize_t size = PyBytes_GET_SIZE(data);
    if (index < 0 || index > size)
        return missing();
    Reader in = {.at = start + index, .end = start + size, .malformed = malformed};
    PyObject *record = read_fields(&in, shape);
    if (record != NULL && in.at != in.end) {
        Py_DECREF(record);
        PyErr_SetString(malformed, "bytes are left over");
        return NULL;
    }
    return record;
}

/* Records to Avro. Every value must be of the very class that its field has: True is no integer, 1.0 is none. */

#include "shape.h"

#include <string.h>

typedef struct {
    char *data;
    size_t length, room;
    char small[2048];
} Writer;

static int write_value(Writer *out, const Shape *shape, PyObject *value);

static int make_room(Writer *out, size_t more) {
    size_t room = out->room;
    while (room - out->length < more)
        room *= 2;
    char *grown = out->data == out->small ? PyMem_Malloc(room) : PyMem_Realloc(out->data, room);
    if (grown == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (out->data == out->small)
        memcpy(grown, out->small, out->length);
    out->data = grown;
    out->room = room;
    return 0;
}

static inline int put(Writer *out, const char *data, size_t size) {
    if (out->room - out->length < size && make_room(out, size) < 0)
        return -1;
    memcpy(out->data + out->length, data, size);
    out->length += size;
    return 0;
}

static inline int put_byte(Writer *out, unsigned char byte) {
    return put(out, (const char *)&byte, 1);
}

/* Zigzag, seven bits a byte, low bits first. */
static inline int put_long(Writer *out, int64_t number) {
    uint64_t zigzag = ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
    unsigned char bytes[10];
    size_t size = 0;
    while (zigzag >= 128) {
        bytes[size++] = (unsigned char)(zigzag | 128);
        zigzag >>= 7;
    }
    bytes[size++] = (unsigned char)zigzag;
    return put(out, (const char *)bytes, size);
}

static int unfit(PyObject *value) {
    PyErr_Format(PyExc_TypeError, "a value of the class %s", Py_TYPE(value)->tp_name);
    return -1;
}

static int write_integer(Writer *out, const Shape *shape, PyObject *value) {
    int overflow;
    if (!PyLong_CheckExact(value))
        return unfit(value);
    int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (overflow || (shape->kind == KIND_INT && (number < INT32_MIN || number > INT32_MAX))) {
        PyErr_SetObject(PyExc_OverflowError, value);
        return -1;
    }
    return put_long(out, number);
}

static int write_double(Writer *out, PyObject *value) {
    uint64_t bits;
    unsigned char bytes[8];
    if (!PyFloat_CheckExact(value))
        return unfit(value);
    double number = PyFloat_AS_DOUBLE(value);
    memcpy(&bits, &number, sizeof bits);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(bits >> (8 * i));
    return put(out, (const char *)bytes, sizeof bytes);
}

static int write_text(Writer *out, PyObject *value) {
    Py_ssize_t size;
    if (!PyUnicode_Check(value))
        return unfit(value);
    const char *text = PyUnicode_AsUTF8AndSize(value, &size); /* a lone surrogate has none */
    if (text == NULL)
        return -1;
    return put_long(out, size) < 0 ? -1 : put(out, text, (size_t)size);
}

static int write_bytes(Writer *out, PyObject *value) {
    if (!PyBytes_CheckExact(value))
        return unfit(value);
    Py_ssize_t size = PyBytes_GET_SIZE(value);
    return put_long(out, size) < 0 ? -1 : put(out, PyBytes_AS_STRING(value), (size_t)size);
}

static int write_choice(Writer *out, const Shape *shape, PyObject *value) {
    for (Py_ssize_t i = 0; i < shape->count; i++) {
        if (Py_TYPE(value) == shape->parts[i]->cls)
            return put_long(out, i) < 0 ? -1 : write_value(out, shape->parts[i], value);
    }
    return unfit(value);
}

static int write_array(Writer *out, const Shape *shape, PyObject *value) {
    if (!PyTuple_CheckExact(value))
        return unfit(value);
    Py_ssize_t count = PyTuple_GET_SIZE(value);
    if (count > 0 && put_long(out, count) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (write_value(out, shape->parts[0], PyTuple_GET_ITEM(value, i)) < 0)
            return -1;
    }
    return put_byte(out, 0);
}

static int write_enum(Writer *out, const Shape *shape, PyObject *value) {
    if (Py_TYPE(value) != shape->cls)
        return unfit(value);
    long number = PyLong_AsLong(value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    return put_long(out, number);
}

/* The fields one after the other. `txn`: what takes the place of the record's own, or None. */
static int write_fields(Writer *out, const Shape *shape, PyObject *record, PyObject *txn) {
    for (Py_ssize_t i = 0; i < shape->count; i++) {
        PyObject *value = i == shape->txn && txn != Py_None ? txn : *slot(record, shape->offsets[i]);
        if (value == NULL) {
            PyErr_Format(PyExc_AttributeError, "a field of %s is not set", shape->cls->tp_name);
            return -1;
        }
        if (write_value(out, shape->parts[i], value) < 0)
            return -1;
    }
    return 0;
}

static int write_nested(Writer *out, const Shape *shape, PyObject *record, PyObject *txn) {
    if (Py_TYPE(record) != shape->cls)
        return unfit(record);
    if (shape->remembered == 0)
        return write_fields(out, shape, record, txn);
    PyObject **remembered = slot(record, shape->remembered);
    if (*remembered != NULL && PyBytes_CheckExact(*remembered))
        return put(out, PyBytes_AS_STRING(*remembered), (size_t)PyBytes_GET_SIZE(*remembered));
    size_t start = out->length;
    if (write_fields(out, shape, record, txn) < 0)
        return -1;
    PyObject *whole = PyBytes_FromStringAndSize(out->data + start, (Py_ssize_t)(out->length - start));
    if (whole == NULL)
        return -1;
    Py_XSETREF(*remembered, whole);
    return 0;
}

static int write_value(Writer *out, const Shape *shape, PyObject *value) {
    switch (shape->kind) {
    case KIND_INT:
    case KIND_LONG:
        return write_integer(out, shape, value);
    case KIND_BOOLEAN:
        return PyBool_Check(value) ? put_byte(out, value == Py_True) : unfit(value);
    case KIND_DOUBLE:
        return write_double(out, value);
    case KIND_STRING:
        return write_text(out, value);
    case KIND_BYTES:
        return write_bytes(out, value);
    case KIND_OPTIONAL:
        if (value == Py_None)
            return put_byte(out, 0);
        return put_byte(out, 2) < 0 ? -1 : write_value(out, shape->parts[0], value);
    case KIND_CHOICE:
        return write_choice(out, shape, value);
    case KIND_ARRAY:
        return write_array(out, shape, value);
    case KIND_ENUM:
        return write_enum(out, shape, value);
    case KIND_RECORD:
        return write_nested(out, shape, value, Py_None);
    }
    Py_UNREACHABLE();
}

PyObject *write_record(const Shape *shape, PyObject *record, PyObject *txn, PyObject *head) {
    Writer out = {.data = out.small, .room = sizeof out.small};
    PyObject *whole = NULL;
    if (put(&out, PyBytes_AS_STRING(head), (size_t)PyBytes_GET_SIZE(head)) == 0 &&
        write_nested(&out, shape, record, txn) == 0)
        whole = PyBytes_FromStringAndSize(out.data, (Py_ssize_t)out.length);
    if (out.data != out.small)
        PyMem_Free(out.data);
    return whole;
}

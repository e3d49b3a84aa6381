/* Shapes from the tuples in which Python describes them. */

#include "shape.h"

#include <structmember.h>
#include <string.h>

static const char *const NAMES[] = {"int",      "long",   "boolean", "double", "string", "bytes",
                                    "optional", "choice", "array",   "enum",   "record"};

static Shape *shape_new(Kind kind, Py_ssize_t count) {
    Shape *shape = PyMem_Calloc(1, sizeof(Shape));
    if (shape == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    shape->kind = kind;
    shape->txn = -1;
    shape->count = count;
    if (count > 0) {
        shape->parts = PyMem_Calloc((size_t)count, sizeof(Shape *));
        shape->offsets = PyMem_Calloc((size_t)count, sizeof(Py_ssize_t));
        if (shape->parts == NULL || shape->offsets == NULL) {
            PyErr_NoMemory();
            shape_free(shape);
            return NULL;
        }
    }
    return shape;
}

void shape_free(Shape *shape) {
    if (shape == NULL)
        return;
    for (Py_ssize_t i = 0; shape->parts != NULL && i < shape->count; i++)
        shape_free(shape->parts[i]);
    for (Py_ssize_t i = 0; shape->members != NULL && i < ONE_BYTE_NUMBERS; i++)
        Py_XDECREF(shape->members[i]);
    Py_XDECREF(shape->cls);
    PyMem_Free(shape->parts);
    PyMem_Free(shape->offsets);
    PyMem_Free(shape->members);
    PyMem_Free(shape);
}

/* Where instances of the class keep the attribute; 0, which no slot is at, with an exception set if it has no slot. */
static Py_ssize_t offset_of(PyTypeObject *cls, const char *name) {
    PyObject *found = PyObject_GetAttrString((PyObject *)cls, name);
    Py_ssize_t offset = 0;
    if (found == NULL)
        return 0;
    if (Py_TYPE(found) == &PyMemberDescr_Type) {
        PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
        if (member->type == T_OBJECT_EX)
            offset = member->offset;
    }
    Py_DECREF(found);
    if (offset == 0)
        PyErr_Format(PyExc_TypeError, "%s.%s is no slot", cls->tp_name, name);
    return offset;
}

static int take_class(Shape *shape, PyObject *cls) {
    if (!PyType_Check(cls)) {
        PyErr_SetString(PyExc_TypeError, "a class is needed");
        return -1;
    }
    shape->cls = (PyTypeObject *)Py_NewRef(cls);
    return 0;
}

/* ("optional", what), ("array", what), ("choice", record, …) */
static Shape *from_parts(Kind kind, PyObject *described) {
    Py_ssize_t count = PyTuple_GET_SIZE(described) - 1;
    Shape *shape = shape_new(kind, count);
    for (Py_ssize_t i = 0; shape != NULL && i < count; i++) {
        shape->parts[i] = shape_from(PyTuple_GET_ITEM(described, i + 1));
        if (shape->parts[i] == NULL) {
            shape_free(shape);
            return NULL;
        }
    }
    return shape;
}

/* ("enum", class, ((number, member), …)) */
static Shape *from_enum(PyObject *described) {
    PyObject *cls, *members;
    if (!PyArg_ParseTuple(described, "sOO!", &(const char *){NULL}, &cls, &PyTuple_Type, &members))
        return NULL;
    Shape *shape = shape_new(KIND_ENUM, 0);
    if (shape == NULL)
        return NULL;
    shape->members = PyMem_Calloc(ONE_BYTE_NUMBERS, sizeof(PyObject *));
    if (shape->members == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    if (take_class(shape, cls) < 0)
        goto failed;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(members); i++) {
        Py_ssize_t number;
        PyObject *member;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(members, i), "nO", &number, &member))
            goto failed;
        if (number < 0 || number >= ONE_BYTE_NUMBERS || Py_TYPE(member) != shape->cls) {
            PyErr_Format(PyExc_ValueError, "%R cannot be number %zd of an enum", member, number);
            goto failed;
        }
        Py_XSETREF(shape->members[number], Py_NewRef(member));
    }
    return shape;
failed:
    shape_free(shape);
    return NULL;
}

/* ("record", class, ((name, what), …), remembers its bytes) */
static Shape *from_record(PyObject *described) {
    PyObject *cls, *fields;
    int remembers;
    if (!PyArg_ParseTuple(described, "sOO!p", &(const char *){NULL}, &cls, &PyTuple_Type, &fields, &remembers))
        return NULL;
    Shape *shape = shape_new(KIND_RECORD, PyTuple_GET_SIZE(fields));
    if (shape == NULL)
        return NULL;
    if (take_class(shape, cls) < 0)
        goto failed;
    for (Py_ssize_t i = 0; i < shape->count; i++) {
        const char *name;
        PyObject *what;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(fields, i), "sO", &name, &what))
            goto failed;
        if ((shape->offsets[i] = offset_of(shape->cls, name)) == 0 || (shape->parts[i] = shape_from(what)) == NULL)
            goto failed;
        if (strcmp(name, "txn") == 0)
            shape->txn = i;
    }
    if (remembers && (shape->remembered = offset_of(shape->cls, "_encoded")) == 0)
        goto failed;
    return shape;
failed:
    shape_free(shape);
    return NULL;
}

Shape *shape_from(PyObject *described) {
    int is_plain = PyUnicode_Check(described);
    if (!is_plain && !(PyTuple_Check(described) && PyTuple_GET_SIZE(described) > 1)) {
        PyErr_Format(PyExc_TypeError, "%R describes no type", described);
        return NULL;
    }
    const char *name = PyUnicode_AsUTF8(is_plain ? described : PyTuple_GET_ITEM(described, 0));
    if (name == NULL)
        return NULL;
    for (int kind = KIND_INT; kind <= KIND_RECORD; kind++) {
        if (strcmp(name, NAMES[kind]) != 0 || is_plain != (kind < KIND_OPTIONAL))
            continue;
        if (is_plain)
            return shape_new(kind, 0);
        if (kind == KIND_ENUM)
            return from_enum(described);
        return kind == KIND_RECORD ? from_record(described) : from_parts(kind, described);
    }
    PyErr_Format(PyExc_ValueError, "%R describes no type", described);
    return NULL;
}

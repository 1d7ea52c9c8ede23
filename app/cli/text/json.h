// Json: a value that is written as JSON. Objects keep the order in which their keys came; a number that is not finite
// is null. What is written in braces is an object if it is a list of pairs whose first is text, else an array:

//     Json{{"rank", 2}, {"ops", {"0F0", "0F1"}}}    {"rank": 2, "ops": ["0F0", "0F1"]}

// Reading JSON is nlohmann/json's work, in the sources that read.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stagewright {

class Json {
public:
    class Item; // what may be between the commas of a list in braces
    using Items = std::vector<Json>;
    using Members = std::vector<std::pair<std::string, Json>>;

    Json();
    Json(std::nullptr_t);
    Json(std::initializer_list<Item> items);
    template <std::integral T>
    Json(T value) : Json(Number{}, whole(value))
    {
    }
    Json(double value); // null where it is not finite
    Json(std::string text);
    Json(std::string_view text);
    Json(const char* text);
    template <typename T>
    Json(const std::vector<T>& values) : Json(array())
    {
        for (const T& value : values) push_back(Json(value));
    }
    template <typename T>
    Json(const std::optional<T>& value) : Json() // null where there is none
    {
        if (value) *this = Json(*value);
    }
    Json(const Json& other);
    Json(Json&& other) noexcept;
    Json& operator=(Json other) noexcept;
    ~Json();

    static Json array();
    static Json object();

    bool isNull() const;
    bool isArray() const;
    bool isObject() const;
    bool isNumber() const;
    std::optional<double> number() const;
    const std::string* text() const; // null: it is not text
    bool isTruth() const;            // true or false
    std::size_t size() const;        // of arrays and objects, else 0
    bool empty() const { return size() == 0; }
    const Json& at(std::size_t index) const;      // of an array with so many
    const Json* find(std::string_view key) const; // null: it is not an object or has no such key
    const Members& members() const;               // of an object
    Json& operator[](std::string_view key);       // an object's, null before; a null becomes an object
    Json& operator[](std::size_t index);          // an array's, nulls up to it where it is shorter; likewise
    void push_back(Json value);                   // to an array; a null becomes one
    Json& add(std::string_view key);              // as operator[] with a key that is not there yet, without a look
    void reserve(std::size_t count);              // room in an array, or for the members of an object or a null
    Json& back();                                 // of an array that is not empty
    void update(Json object);                     // its keys replace those of the same name, or are added at the end

    // On one line without blanks, or on indented lines. Bytes that are not UTF-8 are written as U+FFFD.
    std::string line() const;
    std::string page(int depth = 0) const; // as it is written so deep within another value

private:
    using Whole = std::variant<bool, std::int64_t, std::uint64_t>;
    struct Number {};
    Json(Number, Whole value);
    template <std::integral T>
    static Whole whole(T value)
    {
        if constexpr (std::same_as<T, bool>)
            return value;
        else if constexpr (std::signed_integral<T>)
            return static_cast<std::int64_t>(value);
        else
            return static_cast<std::uint64_t>(value);
    }
    void write(std::string& out, int depth) const; // depth < 0: on one line

    std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Items, Members> m_value;
};

class Json::Item {
public:
    template <typename T>
    requires(std::constructible_from<Json, T> && !std::same_as<std::remove_cvref_t<T>, Item>) Item(T&& value)
        : m_value(std::forward<T>(value)) // NOLINT(bugprone-forwarding-reference-overload): not for an Item
    {
    }
    Item(std::initializer_list<Item> items) : m_value(items) {}

private:
    friend class Json;
    mutable Json m_value; // taken by the list it is in
};

Json textOrNull(std::string text);   // null where it is empty
Json countOrNull(int count);         // null where it is 0: unknown
Json ownJson(std::string_view text); // what this program wrote as text; null where it is not JSON

} // namespace stagewright

// What expressions of lessons give.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright::lessons {

class Value;
using List = std::vector<Value>;

// Something with named figures: a simulated schedule, a recorded run.
class Report {
public:
    virtual ~Report() = default;
    // "makespan", "idle_by_cause"; an unknown key is a Usage error that lists the known ones.
    virtual Result<Value> figure(std::string_view key) const = 0;
};

// Nothing (a figure that does not apply), a condition, a number, a text, a list, or a report.
class Value {
public:
    Value() = default;
    Value(bool truth) : m_held(truth) {}
    Value(double number) : m_held(number) {}
    Value(int number) : m_held(static_cast<double>(number)) {}
    Value(std::string text) : m_held(std::move(text)) {}
    Value(const char* text) : m_held(std::string(text)) {}
    Value(List list) : m_held(std::make_shared<const List>(std::move(list))) {}
    Value(std::shared_ptr<const Report> report) : m_held(std::move(report)) {}

    bool isNothing() const { return std::holds_alternative<std::monostate>(m_held); }
    const bool* truth() const { return std::get_if<bool>(&m_held); }
    const double* number() const { return std::get_if<double>(&m_held); }
    const std::string* text() const { return std::get_if<std::string>(&m_held); }
    const List* list() const;
    const Report* report() const;

private:
    std::variant<std::monostate, bool, double, std::string, std::shared_ptr<const List>, std::shared_ptr<const Report>>
        m_held;
};

// "33", "0.4286", "7, 5, 3, 1", "yes", "none": as prose prints it, numbers with up to four decimals.
std::string toText(const Value& value);
// Nothing and empty lists don't hold; a list holds if every element does. Numbers and texts are not conditions: Usage
// error.
Result<bool> holds(const Value& value);
// Within 1e-9 (absolute below 1, else relative); lists of the same length by element.
bool same(const Value& a, const Value& b);
const char* kindOf(const Value& value); // "a number", for messages
std::string numberText(double value);
int orderOf(double a, double b); // −1, 0, 1; 0 within 1e-9

} // namespace stagewright::lessons

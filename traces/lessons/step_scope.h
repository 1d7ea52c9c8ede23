// The meaning of names in a lesson's expressions at a step. Internal to traces/lessons.
#pragma once

#include <functional>
#include <map>
#include <mutex>

#include "traces/lessons/grading.h"

namespace stagewright::lessons {

struct StepState::Inside {
    Inside(const Lesson& ofLesson, const Step& ofStep, Canvas on, Learner by);

    const Lesson& lesson;
    const Step& step;
    Canvas canvas;
    Learner learner;
    Result<std::shared_ptr<const SimulatedReport>> report;

    // Simulations requested by expressions, by their key.
    mutable std::mutex mutex;
    mutable std::map<std::string, Result<std::shared_ptr<const SimulatedReport>>> simulated;

    // The canvas of the check's solution; without one, the learner's.
    Result<Canvas> solved(const Check* check) const;
    Result<std::shared_ptr<const SimulatedReport>> reportOf(const std::string& key,
                                                            const std::function<Result<Canvas>()>& make) const;

    struct Best {
        double value = 0;
        std::string name;
    };
    std::optional<Best> bestKnown(const Check* check) const;
    std::optional<Best> par(const Check* check) const;
    Bound boundFor(const Check* check) const;
};

class StepScope : public Scope {
public:
    StepScope(const StepState::Inside& inside, const Check* check, const RunBlock* block)
        : m_in(inside), m_check(check), m_block(block)
    {
    }

    Result<Value> name(std::string_view name) const override;
    Result<Value> call(std::string_view function, const std::vector<Argument>& arguments) const override;

    static std::vector<std::string> names();     // beyond the figures of reports
    static std::vector<std::string> functions(); // beyond those of expressions

private:
    using Arguments = std::vector<Argument>;
    Result<Value> simulate(const Arguments& arguments, bool possibleOnly) const;
    Result<Value> simulateOne(const std::string& name, const Arguments& arguments, bool possibleOnly) const;
    Result<Value> runOf(const std::string& key, bool fitted) const;
    Result<Value> ofOrder(std::string_view function, const Arguments& arguments) const;
    Result<Value> underChannels(std::string_view function, const Arguments& arguments) const;
    Result<Value> secretOf(const std::string& id) const;
    Result<Value> said(const std::string& id) const;
    Result<Value> goalValue(const Arguments& arguments) const;
    Result<Value> explained(const Arguments& arguments) const;
    Result<std::shared_ptr<const SimulatedReport>> own() const { return m_in.report; }

    const StepState::Inside& m_in;
    const Check* m_check;
    const RunBlock* m_block;
};

} // namespace stagewright::lessons

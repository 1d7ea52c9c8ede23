#include "app/ui/runs/run_view.h"

#include <algorithm>
#include <set>
#include <utility>

#include <QFileInfo>

#include "traces/run/run_facts.h"
#include "widgets/literals.h"
#include "widgets/runs/runs_model.h"
#include "widgets/sentence.h"

namespace stagewright {

Result<std::shared_ptr<const RunView>> makeRunView(const RunRef& ref, std::shared_ptr<const Run> run, int step,
                                                   const ViewChoices& choices)
{
    if (!run->timeline || run->timeline->empty())
        return fail(ErrorCode::Invalid, "run " + run->info.name + " has no complete step",
                    "record it again, or choose another run");
    auto view = std::make_shared<RunView>();
    view->ref = ref;
    view->step = step < 0 ? run->representativeStep() : std::min(step, run->timeline->steps() - 1);
    const auto memoryCap = choices.budget.of({run->timeline->timeUnit(), run->timeline->memoryUnit()});
    STAGEWRIGHT_TRY(
        auto figures,
        reportOf(*run,
                 {.step = view->step, .memoryCap = memoryCap, .levers = true, .baseline = true, .withoutSteps = true}));
    view->figures = std::make_shared<const RunReport>(std::move(figures));
    PanelOptions options;
    options.step = view->step;
    options.name = runTitle(run->info);
    options.memoryCap = memoryCap;
    options.report = view->figures.get();
    options.kernelsByClass = choices.kernelsByClass;
    options.places = placesOf(*run);
    view->panel = makePanel(run->timeline, options);
    view->stepCount = run->timeline->steps();
    view->median = run->representativeStep();
    view->run = std::move(run);
    return std::shared_ptr<const RunView>(std::move(view));
}

QStringList distinctTitles(const std::vector<std::shared_ptr<const RunView>>& views)
{
    QStringList titles;
    for (const auto& view : views) titles << runTitle(view->run->info);
    const auto disturbance = [](const RunView& view) {
        const std::string of = configured(*view.run, "perturb");
        return of.empty() ? u"undisturbed"_s : shownName(of);
    };
    const auto file = [](const RunView& view) { return QFileInfo(view.ref.file).completeBaseName(); };
    const auto number = [](const RunView& view) { return u"run %1"_s.arg(view.ref.id); };
    const QStringList plain = titles;
    for (qsizetype i = 0; i < plain.size(); ++i) {
        std::vector<std::size_t> alike;
        for (qsizetype k = 0; k < plain.size(); ++k)
            if (plain[k] == plain[i]) alike.push_back(static_cast<std::size_t>(k));
        if (alike.size() < 2) continue;
        const auto distinct = [&](const auto& of) { // every one of them from the others
            std::set<QString> values;
            for (const std::size_t k : alike) values.insert(of(*views[k]));
            return values.size() == alike.size();
        };
        const RunView& own = *views[static_cast<std::size_t>(i)];
        titles[i] += u", "_s + (distinct(disturbance) ? disturbance(own) : distinct(file) ? file(own) : number(own));
    }
    return titles;
}

std::shared_ptr<const RunView> overSteps(const RunView& base, const ShownSteps& steps, const ViewChoices& choices)
{
    auto several = std::make_shared<RunView>(base);
    const int last = base.run->timeline->steps() - 1;
    PanelOptions options;
    options.firstStep = std::clamp(steps.first, 0, last);
    options.lastStep = steps.last < 0 ? last : std::clamp(steps.last, options.firstStep, last);
    options.name = runTitle(base.run->info);
    options.kernelsByClass = choices.kernelsByClass;
    options.places = placesOf(*base.run);
    several->steps = ShownSteps{options.firstStep, options.lastStep};
    several->panel = makePanel(base.run->timeline, options);
    return several;
}

} // namespace stagewright

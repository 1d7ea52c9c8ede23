#include "app/ui/runs/run_view.h"

#include <algorithm>
#include <utility>

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

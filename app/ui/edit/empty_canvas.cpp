#include "app/ui/edit/empty_canvas.h"

#include <algorithm>

#include <QDialog>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QPushButton>
#include <QSpinBox>

#include "schedules/edit/edit_timing.h"
#include "traces/run/simulated_run.h"
#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {

void askEmptyCanvas(QWidget* window, std::function<void(int, int, int)> made)
{
    auto* dialog = new QDialog(window);
    dialog->setObjectName(u"newEmpty"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(u"New empty canvas"_s);
    auto* layout = new QVBoxLayout(dialog);
    layout->setContentsMargins(20, 18, 20, 16);
    layout->setSpacing(12);
    layout->addWidget(
        makeLabel(u"Every op starts in a tray under the canvas, to be placed by hand."_s, "secondary", dialog));
    auto* form = new QFormLayout;
    QSpinBox* boxes[3] = {};
    const QString words[3] = {u"Ranks"_s, u"Stages"_s, u"Microbatches"_s};
    const int values[3] = {2, 2, 2}, most[3] = {1024, 4096, 4096};
    for (int i = 0; i < 3; ++i) {
        boxes[i] = new QSpinBox(dialog);
        boxes[i]->setRange(1, most[i]);
        boxes[i]->setValue(values[i]);
        boxes[i]->setAccessibleName(words[i]);
        form->addRow(words[i], boxes[i]);
    }
    boxes[1]->setToolTip(u"Stage s is on rank s mod ranks."_s);
    QObject::connect(boxes[0], &QSpinBox::valueChanged, boxes[1], [stages = boxes[1]](int ranks) {
        stages->setValue(std::max(ranks, stages->value() / std::max(1, ranks) * ranks));
    });
    layout->addLayout(form);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, dialog);
    buttons->button(QDialogButtonBox::Ok)->setText(u"Start"_s);
    buttons->button(QDialogButtonBox::Ok)->setObjectName(u"primary"_s);
    layout->addWidget(buttons);
    QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
    QObject::connect(buttons, &QDialogButtonBox::accepted, dialog,
                     [made = std::move(made), dialog, r = boxes[0], s = boxes[1], m = boxes[2]] {
                         const int ranks = r->value(), stages = s->value(), microbatches = m->value();
                         dialog->accept();
                         made(ranks, stages, microbatches);
                     });
    dialog->open();
}

Result<CanvasRun> emptyCanvas(int ranks, int stages, int microbatches)
{
    Schedule base = emptySchedule(ranks, stages, microbatches);
    const Schedule nothing = base;
    for (int r = 0; r < ranks; ++r) { // backwards of a rank from the last stage down
        auto& row = base.order[static_cast<std::size_t>(r)];
        for (int j = 0; j < microbatches; ++j)
            for (int s = r; s < stages; s += ranks) row.push_back(makeForward(s, j));
        for (int j = 0; j < microbatches; ++j)
            for (int s = stages - 1; s >= 0; --s)
                if (s % ranks == r) row.push_back(makeBackward(s, j));
    }
    base = earliestOrder(base, CostModel::uniform(base));
    base.name = "empty";
    STAGEWRIGHT_TRY(auto run, simulatedRun(base, CostModel::uniform(base)));
    run.info.name = u"canvas %1 × %2"_s.arg(ranks).arg(microbatches).toStdString();
    return CanvasRun{std::move(run), nothing};
}

std::optional<CanvasRun> incompleteCanvas(const Schedule& order, const QString& name)
{
    const Validation found = validate(order);
    if (found.valid() || std::any_of(found.faults.begin(), found.faults.end(), [](const Fault& fault) {
            return fault.kind != FaultKind::Count && fault.kind != FaultKind::Deadlock;
        }))
        return std::nullopt;
    const std::vector<Op> left = unplacedOps(order);
    if (left.empty()) return std::nullopt;
    Schedule whole = order;
    for (const Op& op : left)
        whole.order[static_cast<std::size_t>(whole.placement.rankOf(op.stage, op.microbatch))].push_back(op);
    whole = earliestOrder(whole, CostModel::uniform(whole));
    auto run = simulatedRun(whole, CostModel::uniform(whole));
    if (!run) return std::nullopt;
    run->info.name = !name.isEmpty() ? name.toStdString() : whole.name.empty() ? u"order"_s.toStdString() : whole.name;
    return CanvasRun{std::move(*run), order};
}

} // namespace stagewright
